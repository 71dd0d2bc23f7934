//! The application as a program, on SQLite.

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    surefoot_inventory::program::run().await
}

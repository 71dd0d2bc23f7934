//! The application as a program, on PostgreSQL.

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    surefoot_inventory_postgres::program::run().await
}

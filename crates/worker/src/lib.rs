//! The kernel handle and the workers of Surefoot, on tokio.

//! The coordination primitives of Surefoot on NATS JetStream, and its wake bus.
//!
//! [`Nats`] is a [`Coordinator`](surefoot_sync_core::Coordinator). It needs NATS 2.14.3 or newer with JetStream, and
//! refuses any other server before it creates anything.
//!
//! What the server has acknowledged survives the end of its process. On one server it is written to disk within two
//! minutes, so the loss of power may lose what is younger: use [`Nats::replicas`], or the server's setting
//! `sync_interval: always`.

mod api;
mod clock;
mod connect;
mod declare;
mod ephemeral;
mod facts;
mod inventory;
mod mutex;
mod names;
mod schedules;
mod settings;
mod topics;
mod wake;
mod work;

pub use connect::Nats;
pub use wake::NatsWake;

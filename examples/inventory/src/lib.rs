//! A small real application on Surefoot: stock per warehouse, an outbox, a payment provider.

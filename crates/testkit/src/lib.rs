//! In-memory store, conformance suites, simulation and crash matrix, for Surefoot and its users.

//! The operator's use cases, shared by command line, HTTP API and console.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody said where a server or its programs are.
    #[error(
        "{variable} is not set: run the tests with `cargo xtask test`, or keep `cargo xtask services` running and \
         export what it prints"
    )]
    NotGiven {
        /// The variable.
        variable: &'static str,
    },

    /// A file, a folder or a program could not be used.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// PostgreSQL refuses to run as root, and there is nobody else.
    #[error(
        "the servers do not run as root, and this machine has no account named `nobody`: run as another user"
    )]
    NoAccount,

    /// Everybody must be able to come near the servers' folders.
    #[error(
        "no folder for servers: `nobody` cannot reach any of {}: set {variable} to one that everybody can search",
        shown(tried)
    )]
    NoFolder {
        /// Those that were tried.
        tried: Vec<PathBuf>,
        /// The variable that names another.
        variable: &'static str,
    },

    /// The program ended before it was ready.
    #[error("{name} ended while it was starting ({status}); the end of its log:\n{log}")]
    Ended {
        /// The server.
        name: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it wrote.
        log: String,
    },

    /// The program did not answer in time.
    #[error("{name} does not answer after {waited_s} s; the end of its log:\n{log}")]
    NotReady {
        /// The server.
        name: &'static str,
        /// For how long it was waited, in seconds.
        waited_s: u64,
        /// The last lines that it wrote.
        log: String,
    },
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

impl Error {
    /// For `map_err`: says what was tried with which path.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }
}

//! Ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::Error;

/// So often a start is tried, each time with other ports.
const TRIES: usize = 3;

/// A port that nobody listens on. Somebody else may take it before it is used: see [`retrying`].
pub(crate) fn free() -> Result<u16, Error> {
    let failed = |error| Error::io("listen on", Path::new("127.0.0.1"))(error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    Ok(listener.local_addr().map_err(failed)?.port())
}

/// Starts again what ended at once, since a port may have been taken in between.
pub(crate) fn retrying<T>(start: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        match start() {
            Err(Error::Ended { .. }) if tries < TRIES => tries += 1,
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn ended() -> Error {
        Error::Ended { name: "test", status: ExitStatus::from_raw(256), log: String::new() }
    }

    #[test]
    fn a_start_that_ends_is_tried_again_and_not_for_ever() {
        let starts = Cell::new(0);
        let on_the = |nth: usize| {
            starts.set(0);
            let starts = &starts;
            move || {
                starts.set(starts.get() + 1);
                if starts.get() == nth { Ok(nth) } else { Err(ended()) }
            }
        };
        assert_eq!(retrying(on_the(1)).unwrap(), 1);
        assert_eq!(retrying(on_the(TRIES)).unwrap(), TRIES);
        assert!(matches!(retrying(on_the(TRIES + 1)), Err(Error::Ended { .. })));
        assert_eq!(starts.get(), TRIES);
    }

    #[test]
    fn another_failure_is_final() {
        let starts = Cell::new(0);
        let answer = retrying(|| {
            starts.set(starts.get() + 1);
            Err::<(), _>(Error::NoAccount)
        });
        assert!(matches!(answer, Err(Error::NoAccount)));
        assert_eq!(starts.get(), 1);
    }
}

//! The account that servers run under.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::Error;

/// PostgreSQL refuses to run as root, so root's servers run as `nobody`, and those of anybody else as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account {
    Own,
    Nobody { uid: u32, gid: u32 },
}

impl Account {
    pub(crate) fn of_servers() -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let path = Path::new("/etc/passwd");
        let accounts = fs::read_to_string(path).map_err(Error::io("read", path))?;
        nobody(&accounts).ok_or(Error::NoAccount)
    }

    /// Gives a folder or a file to the account.
    pub(crate) fn own(self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Own => Ok(()),
            Self::Nobody { uid, gid } => {
                chown(path, Some(uid), Some(gid)).map_err(Error::io("give away", path))
            }
        }
    }

    /// Lets the program run under the account. Supplementary groups go as well.
    pub(crate) fn run(self, command: &mut Command) {
        match self {
            Self::Own => {}
            Self::Nobody { uid, gid } => {
                command.uid(uid).gid(gid);
            }
        }
    }
}

fn nobody(accounts: &str) -> Option<Account> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password) = (fields.next()?, fields.next()?);
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (name == "nobody").then_some(Account::Nobody { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_found_among_the_accounts() {
        let accounts =
            "root:x:0:0::/:/bin/sh\n# odd\nnobody2:x:9:9::/:\nnobody:x:65534:65533::/:\n";
        assert_eq!(nobody(accounts), Some(Account::Nobody { uid: 65534, gid: 65533 }));
        assert_eq!(nobody("root:x:0:0::/:/bin/sh\nnobody:x:none:0::/:\n"), None);
        assert_eq!(nobody(""), None);
    }
}

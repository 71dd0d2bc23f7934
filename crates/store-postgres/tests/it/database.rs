//! A database for each test, made from a template that has the schema already.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row};
use surefoot_store_postgres::{PostgresOptions, PostgresStore, migrations, sqlx};
use surefoot_testkit::servers::{PgBouncer, PostgresProxy, Server as Pooler};

/// A database of one test; dropped with it.
pub(crate) struct Database {
    server: Server,
    name: String,
}

/// On which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Newest,
    Oldest,
}

impl Server {
    pub(crate) const BOTH: [Self; 2] = [Self::Newest, Self::Oldest];

    fn url(self) -> String {
        let variable = match self {
            Self::Newest => "DATABASE_URL",
            Self::Oldest => "DATABASE_URL_15",
        };
        let url = std::env::var(variable).unwrap_or_default();
        assert!(
            !url.is_empty(),
            "{variable} is not set: run `cargo xtask test`, or give the URL of a PostgreSQL server"
        );
        url
    }

    fn options(self) -> PgConnectOptions {
        PgConnectOptions::from_str(&self.url()).unwrap().disable_statement_logging()
    }
}

impl Database {
    /// With the store's schema.
    pub(crate) async fn new() -> Self {
        Self::on(Server::Newest).await
    }

    pub(crate) async fn on(server: Server) -> Self {
        let mut conn = server.options().connect().await.unwrap();
        let template = template(server, &mut conn).await;
        Self::create(server, &mut conn, &format!("TEMPLATE {template}")).await
    }

    pub(crate) async fn empty() -> Self {
        let server = Server::Newest;
        let mut conn = server.options().connect().await.unwrap();
        Self::create(server, &mut conn, "TEMPLATE template0").await
    }

    async fn create(server: Server, conn: &mut PgConnection, from: &str) -> Self {
        let row = sqlx::query("SELECT gen_random_uuid()::text AS id").fetch_one(&mut *conn).await;
        let id: String = row.unwrap().get("id");
        let name = format!("surefoot_test_{}", id.replace('-', ""));
        run(conn, &format!("CREATE DATABASE {name} {from}")).await;
        Self { server, name }
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::of(self.server.options().database(&self.name))
    }

    /// As somebody else.
    pub(crate) fn options_as(&self, role: &str) -> PostgresOptions {
        PostgresOptions::of(self.server.options().database(&self.name).username(role))
    }

    /// Through a proxy in front of its server.
    pub(crate) fn through(&self, proxy: &PostgresProxy) -> PostgresOptions {
        let options = self.server.options().host("127.0.0.1").port(proxy.port());
        PostgresOptions::of(options.database(&self.name))
    }

    /// Through a pooler in front of its server.
    pub(crate) fn pooled(&self, pooler: &PgBouncer) -> (Pooler, PostgresOptions) {
        let pooler = pooler.start(&self.server.url()).unwrap();
        let options = PgConnectOptions::from_str(pooler.url()).unwrap().disable_statement_logging();
        (pooler, PostgresOptions::of(options.database(&self.name)))
    }

    pub(crate) fn proxy(&self) -> PostgresProxy {
        PostgresProxy::start(&self.server.url()).unwrap()
    }

    /// For another process: see [`options_of`].
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A connection beside the store.
    pub(crate) async fn raw(&self) -> PgConnection {
        self.server.options().database(&self.name).connect().await.unwrap()
    }
}

/// A database of the newest server by its name.
pub(crate) fn options_of(name: &str) -> PostgresOptions {
    PostgresOptions::of(Server::Newest.options().database(name))
}

/// A connection beside the store of such a database.
pub(crate) async fn raw_of(name: &str) -> PgConnection {
    Server::Newest.options().database(name).connect().await.unwrap()
}

/// A schema that was migrated once, for all tests of this build.
async fn template(server: Server, conn: &mut PgConnection) -> String {
    // FNV-1a.
    let bytes = migrations().iter().flat_map(|text| text.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let name = format!("surefoot_template_{hash:016x}");
    run(conn, "SELECT pg_advisory_lock(7, 7)").await;
    let known = sqlx::query("SELECT FROM pg_database WHERE datname = $1 AND datistemplate");
    if known.bind(&name).fetch_optional(&mut *conn).await.unwrap().is_none() {
        run(conn, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        run(conn, &format!("CREATE DATABASE {name} TEMPLATE template0")).await;
        let options = PostgresOptions::of(server.options().database(&name));
        drop(PostgresStore::open_with(options).await.unwrap());
        run(conn, &format!("ALTER DATABASE {name} IS_TEMPLATE true")).await;
    }
    run(conn, "SELECT pg_advisory_unlock(7, 7)").await;
    name
}

async fn run(conn: &mut PgConnection, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(conn).await.unwrap();
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server = self.server;
        // A test may drop it inside of its own runtime.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut conn = server.options().connect().await.unwrap();
                run(&mut conn, &statement).await;
                conn.close().await.unwrap();
            });
        });
        drop(dropped.join());
    }
}

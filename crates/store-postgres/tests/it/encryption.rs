//! Encrypted connections: of all that the store opens, and only to a server that is who it says.

use std::path::PathBuf;
use surefoot_testkit::ClaimRows as _;

use sqlx::Row;
use surefoot_kernel_core::{EventStore, PlanStore, StoreError, TxStore, WakeBus};
use surefoot_store_postgres::{PostgresOptions, PostgresStore, sqlx};
use surefoot_testkit::servers::{Postgres, Server};
use tokio::task::spawn_blocking;

use crate::published::{claim, emit, order, publish};
use crate::support::step;

const CERTIFICATE: &str = include_str!("tls/server.pem");
const KEY: &str = include_str!("tls/server-key.pem");

fn authority(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls");
    folder.join(name).display().to_string()
}

/// Not every build has encryption; the one of the system has.
async fn server() -> Server {
    let started = spawn_blocking(|| {
        Postgres::given_15().unwrap().tls(CERTIFICATE, KEY).unsynced().start().unwrap()
    });
    started.await.unwrap()
}

async fn open(server: &Server, settings: &str) -> Result<PostgresStore, StoreError> {
    let url = format!("{}?{settings}", server.url());
    PostgresStore::open_with(PostgresOptions::new(&url)?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_is_encrypted_and_the_server_is_who_it_says() {
    let server = server().await;
    let known = format!("sslmode=verify-full&sslrootcert={}", authority("authority.pem"));
    let store = open(&server, &known).await.unwrap();
    store.version_publish(publish("stock")).await.unwrap();
    store.event_emit(emit(order())).await.unwrap();
    let run = store.claim_rows(claim(1)).await.remove(0);
    step(&store, &run).await.unwrap();
    store.wake_bus().heard("inventory").await;
    let mut tx = store.begin().await.unwrap();
    let sessions = "SELECT count(*) AS sessions, count(*) FILTER (WHERE ssl) AS encrypted
        FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE backend_type = 'client backend'";
    let row = sqlx::query(sessions).fetch_one(&mut *tx).await.unwrap();
    let (sessions, encrypted): (i64, i64) = (row.get("sessions"), row.get("encrypted"));
    assert!(sessions >= 5, "{sessions} sessions");
    assert_eq!(encrypted, sessions);
    tx.rollback().await;
    drop(store);

    // Whom another authority has signed, and who has no name there, is refused before anything is said.
    let unknown = format!("sslmode=verify-full&sslrootcert={}", authority("stranger.pem"));
    for settings in [unknown.as_str(), "sslmode=verify-full"] {
        let refused = open(&server, settings).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{settings}: {refused:?}");
    }
    spawn_blocking(move || server.stop().unwrap()).await.unwrap();
}

/// A server that has no encryption is not spoken to where it is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_encryption_is_refused_where_it_is_wanted() {
    let started = spawn_blocking(|| Postgres::given().unwrap().unsynced().start().unwrap());
    let server = started.await.unwrap();
    let refused = open(&server, "sslmode=require").await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(open(&server, "sslmode=prefer").await.is_ok());
    spawn_blocking(move || server.stop().unwrap()).await.unwrap();
}

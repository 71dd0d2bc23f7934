//! Stores behind a codec, for the suite and the crash matrix.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use serde_json::Value;
use surefoot_codec::{CodecError, CodecStore, PayloadCodec, PayloadPlace, WithCodec as _};
use surefoot_kernel_core::{Micros, StoreError, TxStore};
use surefoot_store_sqlite::sqlx::{self, Connection as _, Row as _, SqliteConnection};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, SqliteTx};
use surefoot_testkit::MemoryFactory;
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};
use tempfile::TempDir;

use crate::vault::Vault;

pub(crate) type InMemory = Encoded<MemoryFactory>;
pub(crate) type OnSqlite = Encoded<TempFile>;

/// A vault with one key.
pub(crate) fn vault() -> Vault {
    Vault::new([("k1".to_owned(), [1; 32])], "k1")
}

/// Scrambles letters, each time in another way, and insists on the place. No secret is safe with it; but the suite
/// moves hundreds of megabytes, and encryption that is not optimised would take minutes for them.
#[derive(Default)]
pub(crate) struct Scrambler(AtomicU8);

impl Scrambler {
    /// Within its row of the table of characters, so that it stays a text; twice is as before.
    fn scramble(text: &str, salt: u8) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for byte in &mut bytes {
            if matches!(*byte, 0x20..=0x7f) {
                *byte ^= salt;
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}

impl PayloadCodec for Scrambler {
    fn encode(&self, place: &PayloadPlace<'_>, plain: &str) -> Result<String, CodecError> {
        let salt = self.0.fetch_add(1, Ordering::Relaxed) % 31 + 1;
        Ok(format!("{salt}.{}.{}", place.associated_data(), Self::scramble(plain, salt)))
    }

    fn decode(&self, place: &PayloadPlace<'_>, kept: &str) -> Result<String, CodecError> {
        let damaged = || CodecError::Damaged { why: kept.chars().take(100).collect() };
        let (salt, rest) = kept.split_once('.').ok_or_else(damaged)?;
        let own = rest.strip_prefix(&place.associated_data()).ok_or_else(damaged)?;
        let scrambled = own.strip_prefix('.').ok_or_else(damaged)?;
        Ok(Self::scramble(scrambled, salt.parse().map_err(|_| damaged())?))
    }

    fn redact(&self, _: &PayloadPlace<'_>, value: Value) -> Value {
        value
    }
}

/// Stores of another factory, behind the scrambler.
pub(crate) struct Encoded<F>(F);

impl<F: StoreFactory> StoreFactory for Encoded<F> {
    type Store = CodecStore<F::Store>;
    const READS_PAYLOADS: bool = false;

    async fn fresh() -> Self {
        Self(F::fresh().await)
    }

    async fn open(&self) -> CodecStore<F::Store> {
        self.0.open().await.with_codec(Scrambler::default())
    }

    async fn pass_time(&self, span: Micros) {
        self.0.pass_time(span).await;
    }

    async fn turn_back(&self, span: Micros) {
        self.0.turn_back(span).await;
    }

    async fn write_row(
        tx: &mut <F::Store as TxStore>::Tx,
        key: &str,
        value: &str,
    ) -> Result<(), StoreError> {
        F::write_row(tx, key, value).await
    }

    async fn read_row(store: &CodecStore<F::Store>, key: &str) -> Option<String> {
        F::read_row(store.inner(), key).await
    }

    async fn tamper(&self, tamper: Tamper) -> Tampered {
        self.0.tamper(tamper).await
    }
}

/// A file in a folder of its own, and the offset of its clock.
pub(crate) struct TempFile {
    folder: TempDir,
    offset: Arc<AtomicI64>,
}

impl TempFile {
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self) -> PathBuf {
        self.folder().join("store.db")
    }
}

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnection::connect(path.to_str().unwrap()).await.unwrap()
}

impl StoreFactory for TempFile {
    type Store = SqliteStore;

    async fn fresh() -> Self {
        let file =
            Self { folder: tempfile::tempdir().unwrap(), offset: Arc::new(AtomicI64::new(0)) };
        drop(file.open().await);
        let table = "CREATE TABLE app_table (key TEXT PRIMARY KEY, value TEXT NOT NULL)";
        sqlx::query(table).execute(&mut raw(&file.path()).await).await.unwrap();
        file
    }

    async fn open(&self) -> SqliteStore {
        let options = SqliteOptions::new(self.path()).clock_offset(self.offset.clone());
        SqliteStore::open_with(options.readers(1)).await.unwrap()
    }

    async fn pass_time(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    async fn turn_back(&self, span: Micros) {
        self.offset.fetch_sub(span.get(), Ordering::SeqCst);
    }

    async fn write_row(tx: &mut SqliteTx, key: &str, value: &str) -> Result<(), StoreError> {
        let statement = "INSERT INTO app_table (key, value) VALUES (?, ?)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        let written = sqlx::query(statement).bind(key).bind(value).execute(tx).await;
        written.map(drop).map_err(|error| StoreError::Refused(Box::new(error)))
    }

    async fn read_row(store: &SqliteStore, key: &str) -> Option<String> {
        let mut conn = raw(store.path()).await;
        let query = sqlx::query("SELECT value FROM app_table WHERE key = ?").bind(key);
        query.fetch_optional(&mut conn).await.unwrap().map(|row| row.get("value"))
    }

    /// The store in memory is tampered with in its place: what the decorator does is the same.
    async fn tamper(&self, _: Tamper) -> Tampered {
        Tampered::Unsupported
    }
}

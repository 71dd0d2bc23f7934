//! The store: its handle, and how it is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::SqliteConnection;

use surefoot_kernel_core::{BoxFuture, Micros, PassTime, StoreError, Timestamp};

use crate::clock::StoreClock;
use crate::error::{Fault, Said};
use crate::fence::Fences;
use crate::file::OpenFile;
use crate::migrate::migrate;
use crate::options::SqliteOptions;
use crate::pool::Pool;
use crate::transaction::Transactions;
use crate::wake::{SqliteWake, Watch};
use crate::writer::lock::Turn;
use crate::writer::{Writer, WriterHandle};

/// A durable store in one file, with no server. Clones are handles of the same store; any number of processes may
/// have the same file open.
///
/// Its writer is a task of the runtime on which it was opened.
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: Arc<OpenFile>,
    clock: StoreClock,
    readers: Arc<Pool>,
    writer: WriterHandle,
    transactions: Transactions,
    fences: Fences,
    watch: Arc<Watch>,
    /// The folder of a store that lives as long as its handles.
    _folder: Option<tempfile::TempDir>,
}

impl SqliteStore {
    /// Opens a database file, and creates it or brings its schema up to date if need be.
    ///
    /// # Errors
    /// `Unavailable` if the file cannot be used, `SchemaTooNew` if a newer build wrote it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(SqliteOptions::new(path)).await
    }

    /// Opens a database file with options.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_with(options: SqliteOptions) -> Result<Self, StoreError> {
        Self::start(options, None).await
    }

    /// A store that is gone with its last handle, for tests and trials: a file in a temporary folder, since memory
    /// shared between connections has other locks than a file.
    ///
    /// # Errors
    /// `Unavailable` if there is no place for temporary files.
    pub async fn in_memory() -> Result<Self, StoreError> {
        let folder = tempfile::Builder::new().prefix("surefoot-").tempdir();
        let folder = folder.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        let options = SqliteOptions::new(folder.path().join("store.db")).ephemeral();
        Self::start(options, Some(folder)).await
    }

    async fn start(
        options: SqliteOptions,
        folder: Option<tempfile::TempDir>,
    ) -> Result<Self, StoreError> {
        migrate(&options).await?;
        let options = options.of_open_file();
        let turn = Turn::new();
        let fences = Fences::default();
        let file = Arc::new(OpenFile::at(&options.path)?);
        let writer = Writer::start(&options, file.clone(), turn.clone());
        let transactions = Transactions {
            pool: Pool::transactions(&options, fences.clone()),
            file: file.clone(),
            turn,
            lock_wait: options.lock_wait,
            clock: options.clock.clone(),
        };
        Ok(Self(Arc::new(Inner {
            readers: Pool::readers(&options),
            writer,
            transactions,
            fences,
            watch: Watch::new(Pool::watch(&options)),
            clock: options.clock,
            path: options.path,
            file,
            _folder: folder,
        })))
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Completes when somebody, in this process or another one, has committed something since the call.
    pub async fn changed(&self) {
        self.0.watch.changed(None).await;
    }

    /// What tells a worker of commits of other processes.
    #[must_use]
    pub fn wake_bus(&self) -> SqliteWake {
        SqliteWake::new(self.0.watch.clone())
    }

    /// How many connections are lent out: for reads, and for transactions of the application. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn lent(&self) -> (usize, usize) {
        (self.0.readers.lent(), self.0.transactions.pool.lent())
    }

    /// How many transactions the writer has made, and the longest one in microseconds. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn writer_stats(&self) -> (u64, u64) {
        let stats = self.0.writer.stats();
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&stats.transactions), read(&stats.hold_us_max))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub(crate) fn writer(&self) -> &WriterHandle {
        &self.0.writer
    }

    pub(crate) fn transactions(&self) -> &Transactions {
        &self.0.transactions
    }

    pub(crate) fn fences(&self) -> &Fences {
        &self.0.fences
    }

    /// Reads on a connection that cannot write.
    pub(crate) async fn read<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, Fault>> + Send,
    ) -> Result<T, StoreError> {
        self.0.file.check()?;
        let mut conn = self.0.readers.borrow().await?;
        let done = read(&mut conn).await;
        conn.give_back();
        Ok(done?)
    }
}

/// A page's cursor that is not one of ours.
pub(crate) fn not_a_cursor() -> StoreError {
    StoreError::Refused(Box::new(Said("the cursor is not one of this list")))
}

impl PassTime for SqliteStore {
    fn pass_time(&self, span: Micros) {
        self.0.clock.advance(span);
    }
}

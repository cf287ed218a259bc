//! The core as one object: settings in, work done. What the binding exposes, without the binding.
//!
//! One engine has one connection for reading and for the changelog, opened at the first use and kept
//! until [`Engine::disconnect`]. A run that takes the lock opens a second one for the lock alone: the
//! heartbeat must never queue behind anybody else's commands.

mod import;

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{Mutex, watch};

use crate::changelog::mongo::MongoChangelogStore;
use crate::changelog::store::ChangelogStore;
use crate::clock::SystemClock;
use crate::config::{RunRequest, Settings};
use crate::connect::{ConnectOptions, Connection, Hello, UpdateForm};
use crate::error::Failed;
use crate::fault::StoreFault;
use crate::files::{self, DirectoryFault};
use crate::host::{Host, Wanted};
use crate::lock::lease::{Holder, OwnerToken};
use crate::lock::mongo::MongoLockStore;
use crate::lock::mongo_orphans::MongoOrphans;
use crate::lock::store::LockStore;
use crate::migration::{MigrationFile, MigrationName, Namespace};
use crate::plan::{Policy, Vantage};
use crate::runner::{Door, Job, Report, Runner};
use crate::status::{self, StatusRow};

/// The core of one kit.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    connection: Mutex<Option<Connection>>,
    form: UpdateForm,
    wanted: watch::Sender<Wanted>,
    /// How many runs are under way.
    running: watch::Sender<usize>,
}

/// What the server can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Does it know multi-document transactions?
    pub transactions: bool,
    /// The name of its set.
    pub set_name: Option<String>,
    /// Which process answered; of a router nothing.
    pub process: Option<String>,
}

/// Everything that `status` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// A row for each migration.
    pub rows: Vec<StatusRow>,
    /// Who holds the lock.
    pub lock: Option<Holder>,
    /// Is there a migrations directory?
    pub directory_found: bool,
}

impl Engine {
    /// An engine that has not connected yet.
    pub fn new(settings: Settings) -> Self {
        let (wanted, running) = (watch::Sender::default(), watch::Sender::default());
        let form = UpdateForm::default();
        Self { settings, connection: Mutex::default(), form, wanted, running }
    }

    /// Connects and asks the server what it can do.
    ///
    /// # Errors
    /// The server can't be reached, or will not have us.
    pub async fn connect(&self) -> Result<Server, Failed> {
        let Hello { transactions, set_name, process, .. } =
            self.connection().await?.hello().await?;
        Ok(Server { transactions, set_name, process })
    }

    /// Reads files, entries and the lock. Writes nothing.
    ///
    /// # Errors
    /// The database or the directory can't be read; a missing directory is not an error here.
    pub async fn status(&self) -> Result<StatusReport, Failed> {
        let connection = self.connection().await?;
        let changelog = self.changelog(&connection);
        let lock = self.lock_store(&connection)?;
        // One after the other: a second connection takes longer than a second round trip.
        let reads = async {
            let entries = changelog.entries(&self.settings.namespace).await;
            (entries, lock.inspect().await)
        };
        let (files, (entries, holder)) = tokio::join!(self.files(), reads);
        let (files, directory_found) = match files {
            Ok(files) => (files, true),
            Err(DirectoryFault::NotFound { .. }) => (Vec::new(), false),
            Err(fault) => return Err(fault.into()),
        };
        let entries = entries?;
        let holder = holder?.map(|holder| status::naming_its_migration(holder, &entries));
        let rows = status::rows(&files, &entries, holder.as_ref());
        Ok(StatusReport { rows, lock: holder, directory_found })
    }

    /// Who holds the lock, whoever it is.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn lock(&self) -> Result<Option<Holder>, Failed> {
        let connection = self.connection().await?;
        let Some(holder) = self.lock_store(&connection)?.inspect().await? else {
            return Ok(None);
        };
        let namespace = Namespace::new(holder.namespace.clone());
        let entries = self.changelog(&connection).entries(&namespace).await?;
        Ok(Some(status::naming_its_migration(holder, &entries)))
    }

    /// Removes the lock if its owner is still the one that was shown.
    ///
    /// # Errors
    /// The database refuses or can't be reached.
    pub async fn force_release(&self, shown: Option<String>) -> Result<Option<Holder>, Failed> {
        let connection = self.connection().await?;
        let shown = shown.map(OwnerToken::from_text);
        Ok(self.lock_store(&connection)?.force_release(shown.as_ref()).await?)
    }

    /// One run of `up`, `down`, `redo` or `mark`.
    ///
    /// # Errors
    /// Whatever stopped it, with what had been done by then.
    pub async fn run<H: Host>(&self, request: RunRequest, host: Arc<H>) -> Result<Report, Failed> {
        self.as_long_as_wanted(self.run_wanted(request, host)).await
    }

    /// Does something that can be cancelled or abandoned.
    async fn as_long_as_wanted<T>(&self, work: impl Future<Output = T>) -> T {
        self.running.send_modify(|running| *running += 1);
        let outcome = work.await;
        self.running.send_modify(|running| *running -= 1);
        self.wanted.send_replace(Wanted::Yes);
        outcome
    }

    async fn run_wanted<H: Host>(
        &self,
        request: RunRequest,
        host: Arc<H>,
    ) -> Result<Report, Failed> {
        let settings = &self.settings;
        // The server is being looked for while the files are read.
        let connection = self.connection().await;
        let job = self.job(&request).await?;
        let connection = connection?;
        let timing = job.timing;
        let lock_name = job.identity.run_id.lock_app_name();
        let changelog = Arc::new(self.changelog(&connection));
        let runner =
            Runner::new(changelog, host, SystemClock::start(), job, self.wanted.subscribe());
        let lock_connection = Mutex::new(None);
        let outcome = runner
            .run(|| async {
                let own = self.open(lock_name).await?;
                let store = MongoLockStore::new(
                    own.collection(&settings.lock_collection),
                    timing,
                    self.form.clone(),
                );
                let orphans = MongoOrphans::new(own.database());
                *lock_connection.lock().await = Some(own);
                Ok(Door { lock: Arc::new(store), orphans })
            })
            .await;
        if let Some(own) = lock_connection.into_inner() {
            own.close().await;
        }
        Ok(outcome?)
    }

    /// What [`Engine::run`] would do, as rows in the order of the run. Takes no lock and writes
    /// nothing.
    ///
    /// # Errors
    /// What would stop the run before its first body.
    pub async fn rehearse<H: Host>(
        &self,
        request: RunRequest,
        host: Arc<H>,
    ) -> Result<Vec<StatusRow>, Failed> {
        let job = self.job(&request).await?;
        let StatusReport { rows, lock, .. } = self.status().await?;
        // While nobody is at work, what looks interrupted is.
        let alive = lock.is_some_and(|holder| !holder.expired);
        let vantage = if alive { Vantage::BeforeLock } else { Vantage::UnderLock };
        let changelog = Arc::new(self.changelog(&self.connection().await?));
        let clock = SystemClock::start();
        let runner = Runner::new(changelog, host, clock, job, self.wanted.subscribe());
        let names = runner.rehearse(vantage).await?;
        let row = |name: &MigrationName| rows.iter().find(|row| row.file == name.as_str()).cloned();
        Ok(names.iter().filter_map(row).collect())
    }

    async fn job(&self, request: &RunRequest) -> Result<Job, Failed> {
        let settings = &self.settings;
        let timing = settings.timing()?;
        let plan_request = request.request()?;
        let files = self.files().await?;
        Ok(Job {
            identity: settings.identity(plan_request.operation()),
            request: plan_request,
            policy: Policy { foreign: request.foreign(), ..settings.policy() },
            files,
            timing,
            lock: request.lock(),
            on_lock_lost: settings.on_lock_lost,
            between: settings.between,
            environment: settings.environment.clone(),
            service: settings.service.clone(),
        })
    }

    /// Tells the run that is under way to end: it stops waiting, or its body is told to stop and no
    /// other begins.
    pub fn cancel(&self) {
        self.wanted.send_replace(Wanted::Cancelled);
    }

    /// Tells the run that is under way that its host is going away, and returns when it has stopped
    /// what it can and given the lock back.
    pub async fn abandon(&self) {
        self.wanted.send_replace(Wanted::Abandoned);
        // The sender is ours, so the channel is open.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }

    /// Closes the connection; the engine can be used again afterwards.
    pub async fn disconnect(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            connection.close().await;
        }
    }

    async fn connection(&self) -> Result<Connection, StoreFault> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = &*connection {
            return Ok(open.clone());
        }
        let opened = self.open("mmk".to_owned()).await?;
        *connection = Some(opened.clone());
        Ok(opened)
    }

    async fn open(&self, app_name: String) -> Result<Connection, StoreFault> {
        let Settings { uri, db_name, api_version, .. } = &self.settings;
        let mut options = ConnectOptions::new(uri, db_name, app_name);
        options.server_api.clone_from(api_version);
        Connection::open(&options).await
    }

    fn changelog(&self, connection: &Connection) -> MongoChangelogStore {
        let collection = connection.collection(&self.settings.migrations_collection);
        MongoChangelogStore::new(collection, self.form.clone())
    }

    fn lock_store(&self, connection: &Connection) -> Result<MongoLockStore, Failed> {
        let collection = connection.collection(&self.settings.lock_collection);
        Ok(MongoLockStore::new(collection, self.settings.timing()?, self.form.clone()))
    }

    async fn files(&self) -> Result<Vec<MigrationFile>, DirectoryFault> {
        let Settings { migrations_dir, file_extensions, .. } = &self.settings;
        files::read(migrations_dir.clone(), file_extensions.clone()).await
    }
}

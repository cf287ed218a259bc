//! The real thing: runs of the core on stores in memory, or on a server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongo_migrate_kit::changelog::entry::Entry;
use mongo_migrate_kit::changelog::memory::MemoryChangelogStore;
use mongo_migrate_kit::changelog::mongo::MongoChangelogStore;
use mongo_migrate_kit::changelog::store::ChangelogStore;
use mongo_migrate_kit::clock::TokioClock;
use mongo_migrate_kit::connect::{ConnectOptions, Connection, UpdateForm};
use mongo_migrate_kit::event::Event;
use mongo_migrate_kit::host::{
    Acknowledged, Between, BodyCall, BodyReply, HookCall, Host, HostError, HostGone, ModuleFacts,
    StopReason, Wanted,
};
use mongo_migrate_kit::lock::lease::RunId;
use mongo_migrate_kit::lock::memory::{MemoryLockStore, ServerClock};
use mongo_migrate_kit::lock::memory_orphans::MemoryOrphans;
use mongo_migrate_kit::lock::mongo::MongoLockStore;
use mongo_migrate_kit::lock::mongo_orphans::MongoOrphans;
use mongo_migrate_kit::lock::orphans::Orphans;
use mongo_migrate_kit::lock::store::LockStore;
use mongo_migrate_kit::lock::timing::Timing;
use mongo_migrate_kit::lock::wait::WaitPolicy;
use mongo_migrate_kit::migration::{MigrationFile, MigrationName, Namespace};
use mongo_migrate_kit::plan::Request;
use mongo_migrate_kit::runner::{Door, Job, Report, Runner, Stopped};
use tokio::sync::{Notify, watch};

use crate::{Fate, Files, Ran, checksum, jobs, name};

const TTL: Duration = Duration::from_secs(60);

fn timing() -> Timing {
    Timing::new(TTL).expect("a valid TTL")
}

/// A process: it runs what it is told to, and ends each body as fate has it.
struct Process {
    /// `None`: time passes by itself.
    clock: Option<ServerClock>,
    fates: Mutex<VecDeque<Fate>>,
    ran: Mutex<Ran>,
    dying: Notify,
    wanted: watch::Sender<Wanted>,
}

impl Host for Process {
    async fn load(&self, names: Vec<MigrationName>) -> Result<Vec<ModuleFacts>, HostGone> {
        Ok(jobs::loaded(names))
    }

    async fn connect(&self, _app_name: String) -> Result<Acknowledged, HostGone> {
        Ok(Ok(()))
    }

    async fn run(&self, call: BodyCall) -> Result<BodyReply, HostGone> {
        self.ran.lock().expect("one thread").push((call.name.to_string(), call.direction));
        // No two migrations are applied at the same instant.
        tick(self.clock.as_ref()).await;
        let fate = {
            let mut fates = self.fates.lock().expect("one thread");
            fates.rotate_left(1);
            *fates.back().expect("fates repeat")
        };
        match fate {
            Fate::Done | Fate::DiesAfter | Fate::ToldToEnd => {
                Ok(BodyReply::Done { duration_ms: 1, attempts: 1 })
            }
            Fate::Throws => {
                let (name, message) = ("Error".to_owned(), "as fate has it".to_owned());
                let context = serde_json::Value::Null;
                let error = HostError { code: None, name, message, context, cause_id: 0 };
                Ok(BodyReply::Threw { duration_ms: 1, error })
            }
            Fate::Dies | Fate::DiesBefore => self.die().await,
        }
    }

    async fn hook(&self, call: HookCall) -> Result<Acknowledged, HostGone> {
        let (next, last) = {
            let fates = self.fates.lock().expect("one thread");
            (fates.front().copied(), fates.back().copied())
        };
        match call {
            HookCall::BeforeEach { .. } if next == Some(Fate::DiesBefore) => self.die().await,
            HookCall::AfterEach { .. } if last == Some(Fate::DiesAfter) => self.die().await,
            HookCall::AfterEach { .. } if last == Some(Fate::ToldToEnd) => {
                self.wanted.send_replace(Wanted::Cancelled);
                Ok(Ok(()))
            }
            _ => Ok(Ok(())),
        }
    }

    fn abort(&self, _reason: StopReason) {}

    fn emit(&self, _event: &Event) {}
}

impl Process {
    async fn die<T>(&self) -> T {
        self.dying.notify_one();
        std::future::pending().await
    }
}

/// No two migrations are applied at the same instant.
async fn tick(clock: Option<&ServerClock>) {
    match clock {
        Some(clock) => clock.advance(1),
        None => tokio::time::sleep(Duration::from_millis(2)).await,
    }
}

/// A database with one history.
pub trait World {
    /// The clock of its server, where it is ours to move.
    fn clock(&self) -> Option<ServerClock>;

    /// A handle on the changelog.
    fn changelog(&self) -> impl ChangelogStore;

    /// The way to the lock.
    fn door(&self) -> Door<impl LockStore, impl Orphans>;

    /// Runs one process to its end: its own, or its death, which is `None`.
    async fn run(&self, job: Job, fates: &[Fate]) -> (Ran, Option<Result<Report, Stopped>>) {
        tick(self.clock().as_ref()).await;
        let (wanted, cancel) = watch::channel(Wanted::Yes);
        let process = Arc::new(Process {
            wanted,
            clock: self.clock(),
            fates: Mutex::new(fates.iter().copied().collect()),
            ran: Mutex::default(),
            dying: Notify::new(),
        });
        let (host, changelog) = (Arc::clone(&process), Arc::new(self.changelog()));
        let runner = Runner::new(changelog, host, TokioClock::start(), job, cancel);
        let door = self.door();
        let outcome = tokio::select! {
            outcome = runner.run(|| async { Ok(door) }) => Some(outcome),
            () = process.dying.notified() => None,
        };
        let ran = process.ran.lock().expect("one thread").clone();
        (ran, outcome)
    }

    /// All entries, by name.
    async fn entries(&self) -> Vec<Entry> {
        let entries = self.changelog().entries(&Namespace::default()).await;
        let mut entries = entries.expect("a changelog that can be read");
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }
}

/// A database that is no database.
pub struct MemoryWorld {
    clock: ServerClock,
    lock: MemoryLockStore,
    changelog: MemoryChangelogStore,
}

impl MemoryWorld {
    pub fn new() -> Self {
        let clock = ServerClock::at(1_800_000_000_000);
        let lock = MemoryLockStore::new(clock.clone(), timing());
        Self { lock, changelog: MemoryChangelogStore::new(clock.clone()), clock }
    }
}

impl World for MemoryWorld {
    fn clock(&self) -> Option<ServerClock> {
        Some(self.clock.clone())
    }

    fn changelog(&self) -> impl ChangelogStore {
        self.changelog.handle()
    }

    fn door(&self) -> Door<impl LockStore, impl Orphans> {
        Door { lock: Arc::new(self.lock.handle()), orphans: MemoryOrphans::new() }
    }
}

/// A server, with a pair of collections for each history.
pub struct MongoWorld {
    connection: Connection,
    form: UpdateForm,
    history: u64,
}

impl MongoWorld {
    pub async fn open(uri: &str, form: UpdateForm) -> Self {
        let run = RunId::random();
        let database = format!("mmk_histories_{}", run.as_str().replace('-', ""));
        let mut options = ConnectOptions::new(uri, &database, run.app_name());
        options.max_pool_size = 16;
        let connection = Connection::open(&options).await.expect("a usable connection string");
        Self { connection, form, history: 0 }
    }

    /// Leaves the history that there is alone, and begins another.
    pub fn begin(&mut self, history: u64) {
        self.history = history;
    }

    pub async fn close(self) {
        self.connection.database().drop().await.expect("its own database");
        self.connection.close().await;
    }
}

impl World for MongoWorld {
    fn clock(&self) -> Option<ServerClock> {
        None
    }

    fn changelog(&self) -> impl ChangelogStore {
        let name = format!("_mmk_migrations_{}", self.history);
        MongoChangelogStore::new(self.connection.collection(&name), self.form.clone())
    }

    fn door(&self) -> Door<impl LockStore, impl Orphans> {
        let locks = self.connection.collection(&format!("_mmk_locks_{}", self.history));
        let orphans = MongoOrphans::new(self.connection.database());
        let store = MongoLockStore::new(locks, timing(), self.form.clone());
        Door { lock: Arc::new(store), orphans }
    }
}

pub fn job(request: Request, files: &Files, between: Between) -> Job {
    let file = |(text, edition): (&String, &u64)| MigrationFile {
        name: name(text),
        checksum: checksum(text, *edition),
    };
    let mut job = jobs::up(files.iter().map(file).collect(), TTL);
    job.identity.operation = request.operation().into();
    job.request = request;
    job.lock = Some(WaitPolicy::Wait { budget: None, poll: None });
    job.between = between;
    job
}

//! A simulated database, and processes whose bodies stay where they are until the test lets them go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongo_migrate_kit::changelog::entry::{Entry, Status};
use mongo_migrate_kit::changelog::memory::MemoryChangelogStore;
use mongo_migrate_kit::changelog::store::ChangelogStore;
use mongo_migrate_kit::checksum::FileChecksum;
use mongo_migrate_kit::clock::TokioClock;
use mongo_migrate_kit::event::Event;
use mongo_migrate_kit::host::{
    Acknowledged, BodyCall, BodyReply, HookCall, Host, HostGone, ModuleFacts, StopReason, Wanted,
};
use mongo_migrate_kit::lock::lease::RunId;
use mongo_migrate_kit::lock::memory::{MemoryLockStore, Script, ServerClock};
use mongo_migrate_kit::lock::memory_orphans::MemoryOrphans;
use mongo_migrate_kit::lock::store::LockStore;
use mongo_migrate_kit::lock::timing::Timing;
use mongo_migrate_kit::migration::{MigrationFile, MigrationName, Namespace};
use mongo_migrate_kit::runner::{Door, Job, Report, Runner, Stopped};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::jobs;

pub const TTL: Duration = Duration::from_secs(2);

/// One simulated database.
#[derive(Clone)]
pub struct World {
    pub lock: MemoryLockStore,
    pub changelog: MemoryChangelogStore,
    pub orphans: MemoryOrphans,
}

/// A process whose first body stays where it is until the test lets it go on.
pub struct Process {
    world: World,
    /// Bodies that have begun.
    pub begun: Semaphore,
    /// Bodies that may go on.
    gate: Semaphore,
    pub aborted: Mutex<Vec<StopReason>>,
    pub events: Mutex<Vec<Event>>,
}

/// A run under way.
pub struct Running {
    pub id: RunId,
    pub process: Arc<Process>,
    /// What happens to its commands to the changelog.
    pub fates: Script,
    outcome: JoinHandle<Result<Report, Stopped>>,
}

impl World {
    pub fn new() -> Self {
        let clock = ServerClock::at(1_800_000_000_000);
        let ticking = clock.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                ticking.advance(10);
            }
        });
        Self {
            lock: MemoryLockStore::new(clock.clone(), timing()),
            changelog: MemoryChangelogStore::new(clock),
            orphans: MemoryOrphans::new(),
        }
    }

    /// Begins a run of all files; `free` of its bodies need not be let go on.
    pub fn begin(&self, job: Job, free: usize) -> Running {
        self.begin_on(self.lock.handle(), job, free)
    }

    /// Begins a run that sees the lock in its own way.
    pub fn begin_on(&self, lock: impl LockStore, job: Job, free: usize) -> Running {
        let process = Arc::new(Process {
            world: self.clone(),
            begun: Semaphore::new(0),
            gate: Semaphore::new(free),
            aborted: Mutex::default(),
            events: Mutex::default(),
        });
        let id = job.identity.run_id.clone();
        let (host, changelog) = (Arc::clone(&process), self.changelog.handle());
        let fates = changelog.script().clone();
        let door = Door { lock: Arc::new(lock), orphans: self.orphans.clone() };
        let outcome = tokio::spawn(async move {
            let (_wanted, cancel) = watch::channel(Wanted::Yes);
            let changelog = Arc::new(changelog);
            let runner = Runner::new(changelog, host, TokioClock::start(), job, cancel);
            runner.run(|| async { Ok(door) }).await
        });
        Running { id, process, fates, outcome }
    }

    pub async fn entries(&self) -> Vec<Entry> {
        let entries = self.changelog.handle().entries(&Namespace::default()).await;
        entries.expect("an undisturbed handle")
    }

    /// An operator removes the lock, and its holder has the time to notice.
    pub async fn unlock(&self) {
        self.lock.plant(None);
        tokio::time::sleep(TTL).await;
    }

    /// Whose the lock is.
    pub fn owner(&self) -> Option<String> {
        Some(self.lock.document()?.get("owner")?.to_string())
    }

    pub fn is_registered(&self, run: &RunId) -> bool {
        self.lock.fence().unsettled.iter().any(|known| known.run_id == *run)
    }
}

impl Running {
    /// Returns when the run is in a body.
    pub async fn in_a_body(&self) {
        self.process.begun.acquire().await.expect("never closed").forget();
    }

    pub fn go_on(&self) {
        self.process.gate.add_permits(FILES.len());
    }

    pub fn events(&self) -> Vec<Event> {
        self.process.events.lock().expect("no poison").clone()
    }

    pub fn warnings(&self) -> usize {
        let again = |event: &Event| matches!(event, Event::Warning { code: "LOCK_LOST", .. });
        self.events().iter().filter(|event| again(event)).count()
    }

    pub async fn ended(self) -> Result<Report, Stopped> {
        self.outcome.await.expect("no panic")
    }
}

impl Host for Process {
    async fn load(&self, names: Vec<MigrationName>) -> Result<Vec<ModuleFacts>, HostGone> {
        Ok(jobs::loaded(names))
    }

    async fn connect(&self, _app_name: String) -> Result<Acknowledged, HostGone> {
        Ok(Ok(()))
    }

    async fn run(&self, call: BodyCall) -> Result<BodyReply, HostGone> {
        self.begun.add_permits(1);
        self.gate.acquire().await.expect("never closed").forget();
        let World { lock, changelog, .. } = &self.world;
        let duration_ms = 1;
        // Nothing can be taken back here, so the fence is asked first.
        let fenced = |fence: Vec<u8>| lock.apply_fence_command(&fence) == 0;
        Ok(match (call.settle, call.fence) {
            (Some(_), Some(fence)) if fenced(fence.clone()) => BodyReply::Fenced { duration_ms },
            (Some(settle), _) if changelog.apply_command(&settle) == 0 => {
                BodyReply::Conflict { duration_ms }
            }
            (Some(_) | None, _) => BodyReply::Done { duration_ms, attempts: 1 },
        })
    }

    async fn hook(&self, _call: HookCall) -> Result<Acknowledged, HostGone> {
        Ok(Ok(()))
    }

    fn abort(&self, reason: StopReason) {
        self.aborted.lock().expect("no poison").push(reason);
    }

    fn emit(&self, event: &Event) {
        self.events.lock().expect("no poison").push(event.clone());
    }
}

fn timing() -> Timing {
    Timing::new(TTL).expect("a valid TTL")
}

/// A run of `up` over [`FILES`].
pub fn job() -> Job {
    let file = |name: &&str| MigrationFile {
        name: MigrationName::new(name).expect("a bare name"),
        checksum: FileChecksum::of(name.as_bytes().to_vec()),
    };
    jobs::up(FILES.iter().map(file).collect(), TTL)
}

/// Is this every file, applied by that run?
pub fn applied_by(entries: &[Entry], run: &RunId) -> bool {
    let by_it =
        |entry: &Entry| entry.status == Status::Applied && entry.run_id.as_ref() == Some(run);
    entries.len() == FILES.len() && entries.iter().all(by_it)
}

pub const FILES: [&str; 2] = ["0.js", "1.js"];

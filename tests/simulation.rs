//! Whole runs on the memory stores under paused time: many runners, slow bodies, lost replies, and
//! runners that are cut off in the middle. Every schedule follows from a seed; `SEED=n` runs one.

#[path = "common/jobs.rs"]
mod jobs;
#[path = "common/random.rs"]
mod random;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongo_migrate_kit::changelog::entry::Status;
use mongo_migrate_kit::changelog::memory::MemoryChangelogStore;
use mongo_migrate_kit::changelog::store::ChangelogStore;
use mongo_migrate_kit::checksum::FileChecksum;
use mongo_migrate_kit::clock::TokioClock;
use mongo_migrate_kit::event::Event;
use mongo_migrate_kit::fault::{FaultKind, StoreFault};
use mongo_migrate_kit::host::{
    Acknowledged, Between, BodyCall, BodyReply, HookCall, Host, HostGone, ModuleFacts, StopReason,
    Wanted,
};
use mongo_migrate_kit::lock::lease::RunId;
use mongo_migrate_kit::lock::memory::{Fate, MemoryLockStore, ServerClock};
use mongo_migrate_kit::lock::memory_orphans::{MemoryOrphans, Nature};
use mongo_migrate_kit::lock::orphans::{Operation, Orphans};
use mongo_migrate_kit::lock::timing::Timing;
use mongo_migrate_kit::lock::wait::WaitPolicy;
use mongo_migrate_kit::migration::{MigrationFile, MigrationName, Namespace};
use mongo_migrate_kit::runner::{Door, Job, Report, RunError, Runner, Stopped};
use tokio::sync::{Notify, watch};

use random::Random;

const TTL: Duration = Duration::from_secs(2);
const FILES: usize = 4;
/// Enough to last for the rest of a simulated life.
const FOREVER: usize = 100_000;

/// What all processes of one simulated database share.
#[derive(Clone)]
struct World {
    lock: MemoryLockStore,
    changelog: MemoryChangelogStore,
    orphans: MemoryOrphans,
    bodies: Arc<Mutex<Bodies>>,
}

#[derive(Default)]
struct Bodies {
    running: Vec<(String, String)>,
    /// The runs of all bodies so far.
    runs: Vec<String>,
    overlaps: Vec<String>,
    /// Bodies that began although an older run was still working on the server.
    beside_orphans: Vec<String>,
    /// The tokens under which bodies began, in that order.
    tokens: Vec<i64>,
    /// Which runs finished which migration.
    finished: HashMap<String, Vec<String>>,
}

/// The orphans as one process sees them: not at all, once it is cut off.
struct Sight {
    orphans: MemoryOrphans,
    cut: Arc<AtomicBool>,
}

impl Sight {
    fn reachable(&self) -> Result<&MemoryOrphans, StoreFault> {
        if self.cut.load(Ordering::SeqCst) {
            return Err(StoreFault::new(FaultKind::Unreachable, "cut off"));
        }
        Ok(&self.orphans)
    }
}

impl Orphans for Sight {
    async fn find(&self, run: &RunId) -> Result<Vec<Operation>, StoreFault> {
        self.reachable()?.find(run).await
    }

    async fn stop(&self, operation: &Operation) -> Result<(), StoreFault> {
        self.reachable()?.stop(operation).await
    }

    async fn unfinished_indexes(&self) -> Result<Vec<String>, StoreFault> {
        self.reachable()?.unfinished_indexes().await
    }
}

/// A process: its bodies take their time, and end at once when they are told to.
struct Process {
    world: World,
    pace: Mutex<Random>,
    told_to_stop: Notify,
    stopped: AtomicBool,
}

impl Process {
    /// Is an older run still working on the server?
    async fn orphaned(&self, run: &str) -> bool {
        let runs = self.world.bodies.lock().expect("no test thread panics in here").runs.clone();
        for other in runs.iter().filter(|other| *other != run) {
            let left = self.world.orphans.find(&RunId::from_text(other)).await;
            if !left.expect("an undisturbed handle").is_empty() {
                return true;
            }
        }
        false
    }

    /// What a body has sent to the server ends with it.
    async fn ends_on_the_server(&self, run: &RunId) {
        for operation in self.world.orphans.find(run).await.expect("an undisturbed handle") {
            self.world.orphans.stop(&operation).await.expect("an undisturbed handle");
        }
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
        let orphaned = self.orphaned(&call.run_id).await;
        let run = RunId::from_text(&call.run_id);
        let body = (call.run_id, call.name.to_string());
        self.world.orphans.plant(&run, "update orders", Nature::Obedient);
        let lasts = {
            let mut bodies = self.world.bodies.lock().expect("no test thread panics in here");
            let beside: Vec<_> =
                bodies.running.iter().map(|other| format!("{body:?} {other:?}")).collect();
            bodies.overlaps.extend(beside);
            bodies.beside_orphans.extend(orphaned.then(|| format!("{body:?}")));
            bodies.tokens.push(call.fencing_token.expect("a lock"));
            bodies.running.push(body.clone());
            bodies.runs.push(body.0.clone());
            self.pace
                .lock()
                .expect("no test thread panics in here")
                .below(3 * TTL.as_millis() as u64)
        };
        let told = self.told_to_stop.notified();
        let finished = tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(lasts)) => true,
            () = told => false,
        };
        // A body that was told to stop leaves its command behind, on a server that it can't reach.
        if finished {
            self.ends_on_the_server(&run).await;
        }
        let mut bodies = self.world.bodies.lock().expect("no test thread panics in here");
        bodies.running.retain(|running| *running != body);
        if finished && !self.stopped.load(Ordering::SeqCst) {
            bodies.finished.entry(body.1).or_default().push(body.0);
        }
        Ok(BodyReply::Done { duration_ms: lasts as i64, attempts: 1 })
    }

    async fn hook(&self, _call: HookCall) -> Result<Acknowledged, HostGone> {
        Ok(Ok(()))
    }

    fn abort(&self, _reason: StopReason) {
        self.stopped.store(true, Ordering::SeqCst);
        self.told_to_stop.notify_waiters();
    }

    fn emit(&self, _event: &Event) {}
}

fn job(pid: u32, between: Between) -> Job {
    let files = (0..FILES)
        .map(|index| MigrationFile {
            name: MigrationName::new(&format!("{index}.js")).expect("a bare name"),
            checksum: FileChecksum::of(vec![b'0' + index as u8]),
        })
        .collect();
    let mut job = jobs::up(files, TTL);
    job.identity.pid = pid;
    job.lock = Some(WaitPolicy::Wait { budget: Some(Duration::from_secs(600)), poll: None });
    job.between = between;
    job
}

/// Runs one process; `faults` decides what its network does to it.
async fn process(world: World, pid: u32, seed: u64, cut_off: bool) -> Result<Report, Stopped> {
    let mut random = Random(seed);
    let (lock, changelog) = (world.lock.handle(), world.changelog.handle());
    tokio::time::sleep(Duration::from_millis(random.below(500))).await;
    let cut = Arc::new(AtomicBool::new(false));
    let orphans = Sight { orphans: world.orphans.clone(), cut: Arc::clone(&cut) };
    let host = Arc::new(Process {
        world,
        pace: Mutex::new(Random(seed ^ 1)),
        told_to_stop: Notify::new(),
        stopped: AtomicBool::new(false),
    });
    // Some replies and requests get lost; never so many in a row that a lease ends of it.
    let mut in_a_row = 0;
    let flaky: Vec<Fate> = (0..400)
        .map(|_| {
            let fate = match random.below(8) {
                0 if in_a_row < 4 => Fate::ReplyLost,
                1 if in_a_row < 4 => Fate::RequestLost,
                _ => Fate::Answered,
            };
            in_a_row = if fate == Fate::Answered { 0 } else { in_a_row + 1 };
            fate
        })
        .collect();
    lock.script().then(flaky);
    let network = (lock.clone(), changelog.clone());
    let cut_after = Duration::from_millis(random.below(12_000));
    let cutting = tokio::spawn(async move {
        if cut_off {
            tokio::time::sleep(cut_after).await;
            cut.store(true, Ordering::SeqCst);
            network.0.script().clear();
            network.0.script().then(std::iter::repeat_n(Fate::RequestLost, FOREVER));
            network.1.script().then(std::iter::repeat_n(Fate::RequestLost, FOREVER));
        }
    });
    // Without hooks, one command records a migration and claims the next.
    let between = if seed.is_multiple_of(2) { Between::Nothing } else { Between::Hooks };
    let (wanted, cancel) = watch::channel(Wanted::Yes);
    let runner =
        Runner::new(Arc::new(changelog), host, TokioClock::start(), job(pid, between), cancel);
    let outcome = runner.run(|| async { Ok(Door { lock: Arc::new(lock), orphans }) }).await;
    drop(wanted);
    cutting.abort();
    outcome
}

/// One schedule. Every process but the last may be cut off.
async fn schedule(seed: u64) {
    let mut random = Random(seed);
    let clock = ServerClock::at(1_800_000_000_000);
    let world = World {
        lock: MemoryLockStore::new(clock.clone(), Timing::new(TTL).expect("a valid TTL")),
        changelog: MemoryChangelogStore::new(clock.clone()),
        orphans: MemoryOrphans::new(),
        bodies: Arc::default(),
    };
    let (lock, mut fate) = (world.lock.handle(), Random(seed ^ 2));
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            clock.advance(10);
            if fate.one_in(700) {
                lock.elect();
            }
        }
    });
    let count = 2 + random.below(3) as u32;
    let cuts: Vec<bool> = (1..=count).map(|pid| pid < count && random.one_in(2)).collect();
    let processes: Vec<_> = (1..=count)
        .zip(&cuts)
        .map(|(pid, cut)| {
            tokio::spawn(process(world.clone(), pid, seed.wrapping_mul(31) + u64::from(pid), *cut))
        })
        .collect();
    let mut outcomes = Vec::new();
    for running in processes {
        outcomes.push(running.await.expect("no process panics"));
    }
    ticking.abort();
    judge(seed, &world, &cuts, &outcomes).await;
}

async fn judge(seed: u64, world: &World, cuts: &[bool], outcomes: &[Result<Report, Stopped>]) {
    for (cut, outcome) in cuts.iter().zip(outcomes) {
        if let Err(stopped) = outcome {
            assert!(*cut, "seed {seed}: an undisturbed process stopped: {stopped:?}");
            let honest = matches!(
                stopped.error,
                RunError::Lost { .. } | RunError::Database { .. } | RunError::OutcomeUnknown { .. }
            );
            assert!(honest, "seed {seed}: cut off, but it says {:?}", stopped.error);
        }
    }
    let entries = world.changelog.handle().entries(&Namespace::default()).await;
    let entries = entries.expect("an undisturbed handle");
    let bodies = world.bodies.lock().expect("no test thread panics in here");
    assert!(bodies.overlaps.is_empty(), "seed {seed}: two at once: {:?}", bodies.overlaps);
    let beside = &bodies.beside_orphans;
    assert!(beside.is_empty(), "seed {seed}: beside what an older run left: {beside:?}");
    assert!(bodies.tokens.is_sorted(), "seed {seed}: tokens {:?}", bodies.tokens);
    assert_eq!(entries.len(), FILES, "seed {seed}");
    for entry in &entries {
        assert_eq!(entry.status, Status::Applied, "seed {seed}: {}", entry.name);
        let recorded_by = entry.run_id.as_ref().expect("our entries name their run").as_str();
        let finished = &bodies.finished[&entry.name];
        assert!(finished.iter().any(|run| run == recorded_by), "seed {seed}: {}", entry.name);
        if !cuts.contains(&true) {
            assert_eq!(finished.len(), 1, "seed {seed}: {} ran more than once", entry.name);
        }
    }
}

#[test]
fn bodies_never_overlap_and_the_changelog_tells_the_truth() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..500,
    };
    for seed in seeds {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
            .block_on(schedule(seed));
    }
}

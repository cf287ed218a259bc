//! Whole runs on the memory stores under paused time: many runners, slow bodies, lost replies, and
//! runners that are cut off in the middle. Every schedule follows from a seed; `SEED=n` runs one.

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
use mongo_migrate_kit::host::{
    Acknowledged, BodyCall, BodyReply, Exports, HookCall, Host, HostGone, ModuleFacts, StopReason,
};
use mongo_migrate_kit::lock::lease::{Identity, RunId};
use mongo_migrate_kit::lock::memory::{Fate, MemoryLockStore, ServerClock};
use mongo_migrate_kit::lock::timing::Timing;
use mongo_migrate_kit::lock::wait::WaitPolicy;
use mongo_migrate_kit::migration::{MigrationFile, MigrationName, Namespace};
use mongo_migrate_kit::plan::{Policy, Request};
use mongo_migrate_kit::runner::{Job, Report, RunError, Runner, Stopped};
use tokio::sync::Notify;

const TTL: Duration = Duration::from_secs(2);
const FILES: usize = 4;
/// Enough to last for the rest of a simulated life.
const FOREVER: usize = 100_000;

/// SplitMix64: small, seedable, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// What all processes of one simulated database share.
#[derive(Clone)]
struct World {
    lock: MemoryLockStore,
    changelog: MemoryChangelogStore,
    bodies: Arc<Mutex<Bodies>>,
}

#[derive(Default)]
struct Bodies {
    running: Vec<(String, String)>,
    overlaps: Vec<String>,
    /// Which runs finished which migration.
    finished: HashMap<String, Vec<String>>,
}

/// A process: its bodies take their time, and end at once when they are told to.
struct Process {
    world: World,
    pace: Mutex<Random>,
    told_to_stop: Notify,
    stopped: AtomicBool,
}

impl Host for Process {
    async fn load(&self, names: Vec<MigrationName>) -> Result<Vec<ModuleFacts>, HostGone> {
        let exports =
            Exports { down: true, use_transaction: None, description: None, on_interrupted: None };
        Ok(names
            .into_iter()
            .map(|name| ModuleFacts { name, exports: Ok(exports.clone()) })
            .collect())
    }

    async fn connect(&self, _app_name: String) -> Result<Acknowledged, HostGone> {
        Ok(Ok(()))
    }

    async fn run(&self, call: BodyCall) -> Result<BodyReply, HostGone> {
        let body = (call.run_id, call.name.to_string());
        let lasts = {
            let mut bodies = self.world.bodies.lock().expect("no test thread panics in here");
            let beside: Vec<_> =
                bodies.running.iter().map(|other| format!("{body:?} {other:?}")).collect();
            bodies.overlaps.extend(beside);
            bodies.running.push(body.clone());
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
        let mut bodies = self.world.bodies.lock().expect("no test thread panics in here");
        bodies.running.retain(|running| *running != body);
        if finished && !self.stopped.load(Ordering::SeqCst) {
            bodies.finished.entry(body.1).or_default().push(body.0);
        }
        Ok(BodyReply::Done { duration_ms: lasts as i64 })
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

fn job(pid: u32) -> Job {
    let files = (0..FILES)
        .map(|index| MigrationFile {
            name: MigrationName::new(&format!("{index}.js")).expect("a bare name"),
            checksum: FileChecksum::of(vec![b'0' + index as u8]),
        })
        .collect();
    Job {
        request: Request::Up { file: None, step: false, force: false },
        policy: Policy::default(),
        files,
        identity: Identity {
            run_id: RunId::random(),
            namespace: Namespace::default(),
            changelog: "_mmk_migrations".into(),
            host: "simulated".into(),
            pid,
            user: "nobody".into(),
            operation: "up".into(),
        },
        timing: Timing::new(TTL).expect("a valid TTL"),
        lock: Some(WaitPolicy::Wait { budget: Some(Duration::from_secs(600)), poll: None }),
        environment: "test".into(),
        service: None,
    }
}

/// Runs one process; `faults` decides what its network does to it.
async fn process(world: World, pid: u32, seed: u64, cut_off: bool) -> Result<Report, Stopped> {
    let mut random = Random(seed);
    let (lock, changelog) = (world.lock.handle(), world.changelog.handle());
    tokio::time::sleep(Duration::from_millis(random.below(500))).await;
    let host = Arc::new(Process {
        world,
        pace: Mutex::new(Random(seed ^ 1)),
        told_to_stop: Notify::new(),
        stopped: AtomicBool::new(false),
    });
    // Some replies and requests get lost; never so many in a row that a lease ends of it.
    let flaky: Vec<Fate> = (0..400)
        .map(|_| match random.below(8) {
            0 => Fate::ReplyLost,
            1 => Fate::RequestLost,
            _ => Fate::Answered,
        })
        .collect();
    lock.script().then(flaky);
    let network = (lock.clone(), changelog.clone());
    let cut_after = Duration::from_millis(random.below(12_000));
    let cutting = tokio::spawn(async move {
        if cut_off {
            tokio::time::sleep(cut_after).await;
            network.0.script().clear();
            network.0.script().then(std::iter::repeat_n(Fate::RequestLost, FOREVER));
            network.1.script().then(std::iter::repeat_n(Fate::RequestLost, FOREVER));
        }
    });
    let runner = Runner::new(Arc::new(changelog), host, TokioClock::start(), job(pid));
    let outcome = runner.run(|| async { Ok(Arc::new(lock)) }).await;
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
        bodies: Arc::default(),
    };
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            clock.advance(10);
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

//! Random histories against a plain model: ups, downs, redos and marks of every kind, over files that
//! are edited, removed and added late, with bodies that throw, processes that die at any point or are
//! told to end, with hooks between two migrations and without, where one is recorded and the next
//! claimed at once.
//!
//! After every operation the bodies that ran, their order, and all entries must be what the model
//! says. Every history follows from its seed; `SEED=n` runs one. On a server (`MMK_TEST_MONGO_URI`)
//! fewer of them run, because each takes its time; some with pipelines, some by plain operators.

#[path = "../common/jobs.rs"]
mod jobs;
mod model;
#[path = "../common/random.rs"]
mod random;
mod worlds;

use std::collections::BTreeMap;
use std::io::Write;

use mongo_migrate_kit::changelog::entry::{Entry, Status};
use mongo_migrate_kit::changelog::store::ChangelogStore;
use mongo_migrate_kit::checksum::FileChecksum;
use mongo_migrate_kit::connect::UpdateForm;
use mongo_migrate_kit::host::Between;
use mongo_migrate_kit::migration::{Direction, MigrationName};
use mongo_migrate_kit::plan::{MarkAs, Request, Scope, Selection};
use mongo_migrate_kit::runner::{RunError, Stopped};

use model::{Model, Refused, State};
use random::Random;
use worlds::{MemoryWorld, MongoWorld, World, job};

const HISTORIES: u64 = 10_000;
const HISTORIES_ON_A_SERVER: u64 = 300;
const HISTORIES_BY_OPERATORS: u64 = 100;
const OPERATIONS: u64 = 12;
/// Few names, so that histories meet themselves.
const NAMES: u64 = 6;

impl Random {
    fn name(&mut self) -> String {
        format!("{}.js", self.below(NAMES))
    }

    fn maybe_name(&mut self) -> Option<String> {
        let named = self.one_in(2);
        named.then(|| self.name())
    }
}

fn name(text: &str) -> MigrationName {
    MigrationName::new(text).expect("a bare name")
}

/// How a body ends.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Fate {
    #[default]
    Done,
    Throws,
    /// Its process dies in the middle of it.
    Dies,
    /// Its process dies before it begins, or even before it is claimed.
    DiesBefore,
    /// Its process dies when it is recorded.
    DiesAfter,
    /// Its process is told to end when it is recorded.
    ToldToEnd,
}

type Ran = Vec<(String, Direction)>;

/// The files on disk: name to edition.
type Files = BTreeMap<String, u64>;

fn checksum(name: &str, edition: u64) -> FileChecksum {
    FileChecksum::of(format!("{name} {edition}").into_bytes())
}

fn request(random: &mut Random) -> Request {
    match random.below(8) {
        0..3 => {
            let file = random.maybe_name();
            let scope = match file.as_deref().map(name) {
                Some(file) if random.one_in(2) => Scope::File(file),
                Some(file) => Scope::Through(file),
                None => Scope::All,
            };
            let force = matches!(scope, Scope::File(_)) && random.one_in(3);
            Request::Up { scope, step: random.one_in(3), force }
        }
        3..5 => {
            let selection = match random.below(5) {
                0 => Selection::LastBatch,
                1 => Selection::Batch(1 + random.below(6) as i64),
                2 => Selection::Steps(1 + random.below(3) as u32),
                3 => Selection::To(name(&random.name())),
                _ => Selection::File(name(&random.name())),
            };
            Request::Down { selection, force: random.one_in(3) }
        }
        5 => Request::Redo { file: random.maybe_name().map(|file| name(&file)) },
        _ => {
            let state = if random.one_in(2) { MarkAs::Applied } else { MarkAs::Pending };
            Request::Mark { name: name(&random.name()), state, reason: None }
        }
    }
}

/// Somebody works on the files.
fn edit(random: &mut Random, files: &mut Files) {
    let name = random.name();
    match random.below(4) {
        0 => {
            files.remove(&name);
        }
        1 => *files.entry(name).or_default() += 1,
        _ => {
            files.entry(name).or_insert(1);
        }
    }
}

fn fates(random: &mut Random) -> Vec<Fate> {
    (0..4)
        .map(|_| match random.below(16) {
            0 | 1 => Fate::Throws,
            2 => Fate::Dies,
            3 => Fate::DiesBefore,
            4 => Fate::DiesAfter,
            5 => Fate::ToldToEnd,
            _ => Fate::Done,
        })
        .collect()
}

async fn history(world: &impl World, seed: u64) {
    let (mut random, mut model) = (Random(seed), Model::default());
    let mut told = Vec::new();
    for _ in 0..OPERATIONS {
        for _ in 0..random.below(3) {
            edit(&mut random, &mut model.files);
        }
        let (request, fates) = (request(&mut random), fates(&mut random));
        let between = if random.one_in(2) { Between::Hooks } else { Between::Nothing };
        model.claims_ahead = between == Between::Nothing && world.changelog().claims_ahead();
        told.push(format!("{:?}\n    {request:?} {fates:?} {between:?}", model.files));
        let before = world.entries().await;
        let expected = model.expect(&request, &fates);
        let (ran, outcome) = world.run(job(request, &model.files, between), &fates).await;
        let story = || format!("seed {seed}\n  {}\n  {outcome:#?}", told.join("\n  "));
        match expected {
            Err(Refused) => {
                let refusal =
                    matches!(&outcome, Some(Err(Stopped { error: RunError::Impossible(_), .. })));
                assert!(refusal, "not refused: {}", story());
                assert_eq!((ran, world.entries().await), (vec![], before), "{}", story());
            }
            Ok(bodies) => assert_eq!(ran, bodies, "{}", story()),
        }
        compare(&model, &world.entries().await, &story);
    }
}

fn compare(model: &Model, entries: &[Entry], story: &impl Fn() -> String) {
    assert_eq!(entries.len(), model.known.len(), "{}", story());
    for entry in entries {
        let known = &model.known[&entry.name];
        let status = match known.state {
            State::Applied => Status::Applied,
            State::Reverted => Status::Reverted,
            State::Failed => Status::Failed,
            State::Running(_) => Status::Running,
        };
        assert_eq!((&entry.status, entry.batch), (&status, known.batch), "{}", story());
        assert_eq!(entry.version, Some(known.changes), "{}", story());
        assert!(entry.history.len() <= Entry::HISTORY, "{}", story());
        if known.stands() {
            let stored = entry.checksum.as_deref().expect("a checksum");
            assert!(checksum(&entry.name, known.edition).matches(stored), "{}", story());
        }
        if let State::Running(direction) = known.state {
            assert_eq!(entry.direction, Some(direction), "{}", story());
        }
    }
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..count,
    }
}

#[test]
fn histories_come_out_as_a_person_expects_them_to() {
    for seed in seeds(HISTORIES) {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
            .block_on(history(&MemoryWorld::new(), seed));
    }
}

/// Histories on the server that the environment names.
async fn on_a_server(form: UpdateForm, count: u64) {
    let Ok(uri) = std::env::var("MMK_TEST_MONGO_URI") else {
        // Past the test harness, which keeps what passing tests print to itself. A closed stderr leaves
        // nobody to tell.
        let line = b"NOT RUN against a server: MMK_TEST_MONGO_URI is not set (npm test sets it)\n";
        let _told = std::io::stderr().write_all(line);
        return;
    };
    let mut world = MongoWorld::open(&uri, form).await;
    for seed in seeds(count) {
        world.begin(seed);
        history(&world, seed).await;
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_a_server_come_out_the_same() {
    on_a_server(UpdateForm::default(), HISTORIES_ON_A_SERVER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_a_server_that_takes_no_pipelines_come_out_the_same() {
    on_a_server(UpdateForm::operators(), HISTORIES_BY_OPERATORS).await;
}

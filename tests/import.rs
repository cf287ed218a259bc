//! What another tool's changelog comes to, and that an import writes it once, whatever happens to the
//! lock, the network and the user's patience.

use std::sync::Arc;
use std::time::Duration;

use mongo_migrate_kit::changelog::entry::{Entry, EntryKey, Status};
use mongo_migrate_kit::changelog::memory::MemoryChangelogStore;
use mongo_migrate_kit::changelog::store::ChangelogStore;
use mongo_migrate_kit::checksum::FileChecksum;
use mongo_migrate_kit::clock::TokioClock;
use mongo_migrate_kit::host::Wanted;
use mongo_migrate_kit::import::adopt::{ImportError, ImportJob, ImportReport, Importer, Mode};
use mongo_migrate_kit::import::intake::{
    ChecksumSource, Inputs, Intake, MissingFiles, Target, Trust, Why, Wishes, decide,
};
use mongo_migrate_kit::import::neighbour::{Doubtful, neighbour};
use mongo_migrate_kit::import::source::{EARLIEST, Source, SourceDocument, Value};
use mongo_migrate_kit::import::tool::{Past, Reading, Tool};
use mongo_migrate_kit::lock::lease::{Identity, RunId};
use mongo_migrate_kit::lock::memory::{Fate, MemoryLockStore, ServerClock};
use mongo_migrate_kit::lock::timing::Timing;
use mongo_migrate_kit::migration::{Direction, MigrationFile, MigrationName, Namespace};
use mongo_migrate_kit::runner::RunError;
use proptest::prelude::*;
use tokio::sync::watch;

/// 2024-01-01 and so many hours.
fn hour(hours: i64) -> i64 {
    1_704_067_200_000 + hours * 3_600_000
}

fn text(text: &str) -> Value {
    Value::Text { text: text.to_owned(), instant: None }
}

fn document<const N: usize>(fields: [(&str, Value); N]) -> SourceDocument {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    SourceDocument { fields: fields.collect() }
}

/// A document of migrate-mongo's.
fn done(name: &str, hours: i64) -> SourceDocument {
    document([("fileName", text(name)), ("appliedAt", Value::Instant(hour(hours)))])
}

fn name(text: &str) -> MigrationName {
    MigrationName::new(text).expect("a bare name")
}

fn file(text: &str) -> MigrationFile {
    MigrationFile { name: name(text), checksum: FileChecksum::of(text.as_bytes().to_vec()) }
}

fn entry(text: &str, batch: i64, origin: Option<&str>) -> Entry {
    Entry {
        name: text.to_owned(),
        status: Status::Applied,
        version: Some(1),
        direction: Some(Direction::Up),
        batch: Some(batch),
        applied_at: Some(hour(0)),
        duration_ms: Some(0),
        origin: origin.map(str::to_owned),
        ..Entry::blank(EntryKey(format!("\"/{text}\"")))
    }
}

fn intake(documents: &[SourceDocument], files: &[MigrationFile], entries: &[Entry]) -> Intake {
    let wishes = Wishes::default();
    let inputs = Inputs { tool: Tool::MigrateMongo, documents, files, entries, wishes };
    decide(inputs).expect("a target that may be written")
}

fn names(intake: &Intake) -> Vec<&str> {
    intake.rows.iter().map(|row| row.file.as_str()).collect()
}

#[test]
fn migrations_of_one_run_of_migrate_mongo_are_in_the_order_of_their_names() {
    let block = |name, hours, block| {
        let mut document = done(name, hours);
        document.fields.push(("migrationBlock".to_owned(), Value::Number(hour(block))));
        document
    };
    // Clocks of the machines that ran them differ, so times within a block may not.
    let documents = [block("c.js", 1, 9), block("b.js", 3, 2), block("a.js", 4, 2)];
    let intake = intake(&documents, &[], &[]);
    assert_eq!(names(&intake), ["a.js", "b.js", "c.js"]);
    assert_eq!(intake.rows.iter().map(|row| row.batch).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_time_that_can_not_be_is_no_time() {
    for bad in [
        Value::Null,
        Value::Instant(0),
        Value::Number(1_704_067_200),
        text("soon"),
        Value::Other("true"),
    ] {
        let document = document([("fileName", text("a.js")), ("appliedAt", bad)]);
        let intake = intake(&[document], &[file("a.js")], &[]);
        assert_eq!(intake.rows, []);
        let [rejected] = &intake.rejected[..] else { panic!("{:?}", intake.rejected) };
        assert_eq!((rejected.why, rejected.file.as_deref()), (Why::Malformed, Some("a.js")));
    }
}

#[test]
fn a_malformed_document_is_no_worry_once_its_file_is_applied() {
    let bad = document([("fileName", text("a.js")), ("appliedAt", Value::Null)]);
    let twice = intake(&[bad.clone(), done("a.js", 1)], &[file("a.js")], &[]);
    let marked = intake(&[bad], &[file("a.js")], &[entry("a.js", 1, Some("mark"))]);
    for rejected in twice.rejected.iter().chain(&marked.rejected) {
        assert_eq!((rejected.why, &rejected.file), (Why::Malformed, &None));
    }
}

#[test]
fn a_name_is_found_with_without_and_under_another_extension() {
    let files = ["1-a.ts", "2-b.js", "3.c.mjs"].map(file);
    let documents = [done("1-a.js", 1), done("2-b", 2), done("3.c", 3), done("4-d", 4)];
    let intake = intake(&documents, &files, &[]);
    assert_eq!(names(&intake), ["1-a.ts", "2-b.js", "3.c.mjs", "4-d.js"]);
    let sources: Vec<_> = intake.rows.iter().map(|row| row.checksum_source).collect();
    assert_eq!(sources[2..], [ChecksumSource::Recomputed, ChecksumSource::Missing]);
}

#[test]
fn each_tool_is_known_by_its_own_documents_only_and_ours_by_none() {
    let of_each = [
        (Tool::MigrateMongo, done("a.js", 1)),
        (
            Tool::Mongoat,
            document([("_id", text("x")), ("version", text("1")), ("name", text("a"))]),
        ),
        (
            Tool::TsMigrateMongoose,
            document([
                ("name", text("a")),
                ("state", text("up")),
                ("createdAt", Value::Instant(hour(1))),
            ]),
        ),
        (Tool::MongoMigrateTs, document([("file", text("a")), ("className", text("A"))])),
        (Tool::Umzug, document([("_id", Value::Null), ("migrationName", text("a"))])),
        (Tool::East, document([("_id", text("1_a"))])),
    ];
    for (tool, document) in of_each {
        assert_eq!(Tool::detect(&[document]), [tool]);
        assert_eq!(Tool::named(tool.name()), Some(tool));
    }
    let ours = document([
        ("_id", text("/a.js")),
        ("name", text("a.js")),
        ("version", Value::Number(2)),
        ("status", text("applied")),
    ]);
    assert_eq!(Tool::detect(&[ours]), []);
}

#[test]
fn umzug_gets_its_times_from_object_ids_and_east_has_none() {
    let id = Value::ObjectId { hex: "65".repeat(12), made_at: hour(5) };
    let umzug = Tool::Umzug.read(&document([("_id", id), ("migrationName", text("a.js"))]));
    let east = Tool::East.read(&document([("_id", text("1_a"))]));
    for (reading, applied_at) in [(umzug, Some(hour(5))), (east, None)] {
        let Reading::Applied(Past { applied_at: found, .. }) = reading else {
            panic!("{reading:?}")
        };
        assert_eq!(found, applied_at);
    }
}

#[test]
fn a_neighbour_is_the_changelog_that_knows_most_of_the_pending_files() {
    let files = ["1.js", "2.js", "3.js"].map(file);
    let source = |collection: &str, documents: Vec<SourceDocument>| Source {
        collection: collection.to_owned(),
        documents,
    };
    let umzug = |name| document([("migrationName", text(name))]);
    let sources = [
        source("migrations", vec![umzug("1.js")]),
        source("changelog", vec![done("1.js", 1), done("2.js", 2), umzug("3.js")]),
    ];
    let pending = |names: &[&str]| names.iter().map(|text| name(text)).collect::<Vec<_>>();
    let find = |names: &[&str]| neighbour(&sources, &files, &pending(names), Doubtful::Count);
    let found = find(&["1.js", "2.js", "3.js"]).expect("a neighbour");
    assert_eq!(
        (found.tool, &found.names[..]),
        (Tool::MigrateMongo, &pending(&["1.js", "2.js"])[..])
    );
    assert_eq!(found.command(), "mmk import --from changelog --tool migrate-mongo");
    assert_eq!(find(&["4.js"]), None);
}

/// Any mixture of good and bad documents about few names.
fn documents() -> impl Strategy<Value = Vec<SourceDocument>> {
    let named = prop_oneof![
        8 => "[a-d]".prop_map(|letter| text(&format!("{letter}.js"))),
        1 => "[a-d]".prop_map(|letter| text(&letter)),
        1 => Just(text("../a.js")),
        1 => Just(text("")),
        1 => Just(Value::Null),
    ];
    let timed = prop_oneof![
        8 => (0..50_i64).prop_map(|hours| Value::Instant(hour(hours))),
        1 => (0..50_i64).prop_map(|hours| Value::Text {
            text: "spelt".to_owned(),
            instant: Some(hour(hours)),
        }),
        1 => Just(text("never")),
        1 => Just(Value::Instant(0)),
    ];
    let one =
        (named, timed).prop_map(|(name, time)| document([("fileName", name), ("appliedAt", time)]));
    proptest::collection::vec(one, 0..12)
}

proptest! {
    #[test]
    fn every_document_is_accounted_for_and_a_second_intake_finds_nothing_to_do(
        documents in documents(),
        on_disk in proptest::sample::subsequence(vec!["a.js", "b.js", "c.js", "d.js"], 0..=4),
        there in proptest::sample::subsequence(vec!["a.js", "b.js", "own.js"], 0..=3),
        leave_out in any::<bool>(),
        trusting in any::<bool>(),
    ) {
        let files: Vec<_> = on_disk.into_iter().map(file).collect();
        let mut entries: Vec<_> =
            there.iter().zip(3..).map(|(name, batch)| entry(name, batch, None)).collect();
        let wishes = Wishes {
            missing: if leave_out { MissingFiles::LeaveOut } else { MissingFiles::Adopt },
            trust: if trusting { Trust::Source } else { Trust::Files },
            target: Target::MayBeInUse,
        };
        let decided = |entries: &[Entry], target| decide(Inputs {
            tool: Tool::MigrateMongo,
            documents: &documents,
            files: &files,
            entries,
            wishes: Wishes { target, ..wishes },
        });
        let first = decided(&entries, Target::MayBeInUse).expect("allowed");

        prop_assert_eq!(
            first.rows.len() + first.already_there + first.rejected.len(),
            documents.len()
        );
        let highest = entries.iter().filter_map(|entry| entry.batch).max().unwrap_or(0);
        for (row, batch) in first.rows.iter().zip(highest + 1..) {
            prop_assert_eq!(row.batch, batch);
            prop_assert!(row.applied_at.is_some_and(|at| at >= EARLIEST));
            prop_assert!(!entries.iter().any(|entry| entry.is_about(&row.file)));
        }
        entries.extend(first.rows.iter().map(|row| {
            entry(row.file.as_str(), row.batch, Some("migrate-mongo"))
        }));
        let second = decided(&entries, Target::MustBeFresh).expect("nothing to write, or a repeat");
        prop_assert_eq!(&second.rows, &[]);
        prop_assert_eq!(second.already_there, first.already_there + first.rows.len());
        let pending: Vec<_> = files
            .iter()
            .map(|file| file.name.clone())
            .filter(|name| !entries.iter().any(|entry| entry.is_about(name)))
            .collect();
        let source = Source { collection: "changelog".to_owned(), documents: documents.clone() };
        // What is left of the source after an import stops no run.
        prop_assert_eq!(neighbour(&[source], &files, &pending, Doubtful::Ignore), None);
    }
}

/// A database with two files applied by migrate-mongo, and what an import in it needs.
struct World {
    lock: MemoryLockStore,
    changelog: MemoryChangelogStore,
    wanted: watch::Sender<Wanted>,
}

impl World {
    fn new() -> Self {
        let clock = ServerClock::at(hour(100));
        let changelog = MemoryChangelogStore::new(clock.clone());
        changelog.plant_foreign(Source {
            collection: "changelog".to_owned(),
            documents: vec![done("2.js", 2), done("1.js", 1)],
        });
        Self {
            lock: MemoryLockStore::new(clock, timing()),
            changelog,
            wanted: watch::Sender::default(),
        }
    }

    async fn import(&self) -> Result<ImportReport, ImportError> {
        self.import_over(self.lock.handle(), self.changelog.handle()).await
    }

    async fn import_over(
        &self,
        lock: MemoryLockStore,
        changelog: MemoryChangelogStore,
    ) -> Result<ImportReport, ImportError> {
        let importer = Importer {
            changelog: Arc::new(changelog),
            clock: TokioClock::start(),
            job: ImportJob {
                from: "changelog".to_owned(),
                tool: None,
                wishes: Wishes::default(),
                mode: Mode::Locked,
                files: ["1.js", "2.js"].map(file).to_vec(),
                identity: Identity {
                    run_id: RunId::random(),
                    namespace: Namespace::default(),
                    changelog: "_mmk_migrations".to_owned(),
                    host: "build-1".to_owned(),
                    pid: 41,
                    user: "deploy".to_owned(),
                    operation: "import".to_owned(),
                },
                timing: timing(),
            },
            events: Arc::new(|_| {}),
            cancel: self.wanted.subscribe(),
        };
        importer.run(|| async { Ok(Arc::new(lock)) }).await
    }

    async fn entries(&self) -> Vec<(String, Option<i64>)> {
        let read = self.changelog.handle().entries(&Namespace::default()).await;
        let mut entries: Vec<_> = read
            .expect("the changelog can be read")
            .into_iter()
            .map(|entry| (entry.name, entry.batch))
            .collect();
        entries.sort();
        entries
    }
}

fn timing() -> Timing {
    Timing::new(Duration::from_secs(2)).expect("a valid TTL")
}

fn both() -> Vec<(String, Option<i64>)> {
    vec![("1.js".to_owned(), Some(1)), ("2.js".to_owned(), Some(2))]
}

#[tokio::test(start_paused = true)]
async fn an_import_writes_under_the_lock_and_gives_it_back() {
    let world = World::new();
    let report = world.import().await.expect("an import");
    assert_eq!((report.imported, report.already_there), (2, 0));
    assert_eq!(world.entries().await, both());
    assert_eq!(world.lock.document(), None);
    assert_eq!(world.lock.fence().unsettled, []);
}

#[tokio::test(start_paused = true)]
async fn an_entry_whose_reply_was_lost_is_written_once() {
    let world = World::new();
    let changelog = world.changelog.handle();
    // Two reads of the entries, then the writes.
    changelog.script().then([Fate::Answered, Fate::Answered, Fate::ReplyLost, Fate::RequestLost]);
    let report = world.import_over(world.lock.handle(), changelog).await.expect("an import");
    assert_eq!(report.imported, 2);
    assert_eq!(world.entries().await, both());
}

#[tokio::test(start_paused = true)]
async fn an_import_that_was_cut_off_is_taken_up_by_the_next_one() {
    let world = World::new();
    let changelog = world.changelog.handle();
    changelog.script().then([Fate::Answered; 3].into_iter().chain([Fate::RequestLost; 9]));
    let cut = world.import_over(world.lock.handle(), changelog).await;
    assert!(matches!(cut, Err(ImportError::Run(RunError::OutcomeUnknown { .. }))), "{cut:?}");
    assert_eq!(world.entries().await, both()[..1]);
    assert_eq!(world.lock.document(), None);

    let next = world.import().await.expect("an import");
    assert_eq!((next.imported, next.already_there), (1, 1));
    assert_eq!(world.entries().await, both());
}

#[tokio::test(start_paused = true)]
async fn an_import_without_a_trusted_lease_writes_nothing() {
    let world = World::new();
    let lock = world.lock.handle();
    lock.script().then([Fate::Answered].into_iter().chain([Fate::RequestLost; 200]));
    let lost = world.import_over(lock, world.changelog.handle()).await;
    assert!(matches!(lost, Err(ImportError::Run(RunError::Lost { .. }))), "{lost:?}");
    assert_eq!(world.entries().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_import_writes_no_further_entry_and_gives_the_lock_back() {
    let world = World::new();
    world.wanted.send_replace(Wanted::Cancelled);
    let cancelled = world.import().await;
    assert!(
        matches!(cancelled, Err(ImportError::Run(RunError::Cancelled { .. }))),
        "{cancelled:?}"
    );
    assert_eq!(world.entries().await, []);
    assert_eq!(world.lock.document(), None);
}

#[tokio::test(start_paused = true)]
async fn of_two_imports_at_once_each_entry_comes_from_one() {
    let world = World::new();
    let (one, other) = tokio::join!(world.import(), world.import());
    let written = [&one, &other].map(|report| report.as_ref().map_or(0, |report| report.imported));
    assert_eq!(written.iter().sum::<usize>(), 2, "{one:?} {other:?}");
    for report in [one, other] {
        let held = matches!(&report, Err(ImportError::Run(RunError::LockHeld { .. })));
        assert!(held || report.is_ok(), "{report:?}");
    }
    assert_eq!(world.entries().await, both());
}

//! What a run decides to do, from files, entries and a request.

use std::collections::{HashMap, HashSet};

use mongo_migrate_kit::changelog::entry::{Entry, EntryKey, Status};
use mongo_migrate_kit::checksum::FileChecksum;
use mongo_migrate_kit::event::Unfinished;
use mongo_migrate_kit::host::{Exports, ModuleFacts, OnInterrupted};
use mongo_migrate_kit::migration::{Direction, MigrationFile, MigrationName};
use mongo_migrate_kit::plan::{
    Inputs, MarkAs, OutOfOrder, Plan, Policy, Problem, Request, Scope, Selection, Vantage,
};
use proptest::prelude::*;

fn name(text: &str) -> MigrationName {
    MigrationName::new(text).expect("a bare name")
}

fn file(text: &str) -> MigrationFile {
    MigrationFile { name: name(text), checksum: FileChecksum::of(text.as_bytes().to_vec()) }
}

fn entry(text: &str, status: Status, batch: i64, applied_at: i64) -> Entry {
    Entry {
        name: text.to_owned(),
        direction: Some(Direction::Up),
        checksum: Some(FileChecksum::of(text.as_bytes().to_vec()).as_str().to_owned()),
        batch: Some(batch),
        applied_at: (status == Status::Applied).then_some(applied_at),
        status,
        version: Some(2),
        ..Entry::blank(EntryKey(format!("\"/{text}\"")))
    }
}

fn applied(text: &str, batch: i64, applied_at: i64) -> Entry {
    entry(text, Status::Applied, batch, applied_at)
}

const UP: Request = Request::Up { scope: Scope::All, step: false, force: false };

fn down(selection: Selection) -> Request {
    Request::Down { selection, force: false }
}

struct Case {
    files: Vec<MigrationFile>,
    entries: Vec<Entry>,
    policy: Policy,
}

fn case(files: &[&str], entries: Vec<Entry>) -> Case {
    let files = files.iter().copied().map(file).collect();
    Case { files, entries, policy: Policy::default() }
}

impl Case {
    fn plan(&self, request: &Request) -> Result<Plan, Vec<Problem>> {
        self.plan_from(request, Vantage::UnderLock)
    }

    fn plan_from(&self, request: &Request, vantage: Vantage) -> Result<Plan, Vec<Problem>> {
        let Self { files, entries, policy } = self;
        Plan::new(request, Inputs { files, entries, policy: *policy, vantage })
    }

    fn names(&self, request: &Request) -> Vec<String> {
        let plan = self.plan(request).expect("a possible plan");
        plan.steps.iter().map(|step| step.name.to_string()).collect()
    }
}

#[test]
fn up_takes_what_is_pending_in_order_as_one_batch_after_the_highest_ever() {
    let reverted = entry("2.js", Status::Reverted, 7, 0);
    let case = case(&["1.js", "2.js", "3.js"], vec![applied("1.js", 1, 10), reverted]);
    let plan = case.plan(&UP).expect("a possible plan");
    let steps: Vec<_> = plan.steps.iter().map(|s| (s.name.to_string(), s.batch)).collect();
    assert_eq!(steps, [("2.js".to_owned(), Some(8)), ("3.js".to_owned(), Some(8))]);
}

#[test]
fn step_gives_each_migration_a_batch_of_its_own() {
    let plan = case(&["1.js", "2.js"], vec![])
        .plan(&Request::Up { scope: Scope::All, step: true, force: false })
        .expect("a possible plan");
    assert_eq!(plan.steps.iter().map(|s| s.batch).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[test]
fn a_named_file_that_is_applied_is_skipped_unless_forced() {
    let case = case(&["1.js"], vec![applied("1.js", 1, 10)]);
    let named = |force| Request::Up { scope: Scope::File(name("1.js")), step: false, force };
    let plan = case.plan(&named(false)).expect("a possible plan");
    assert_eq!((plan.steps.len(), plan.skipped), (0, vec![name("1.js")]));
    let plan = case.plan(&named(true)).expect("a possible plan");
    assert!(plan.steps[0].forced);
}

#[test]
fn an_unknown_file_is_a_problem_that_lists_what_there_is() {
    for scope in [Scope::File(name("9.js")), Scope::Through(name("9.js"))] {
        let request = Request::Up { scope, step: false, force: false };
        let problems = case(&["1.js"], vec![]).plan(&request).expect_err("impossible");
        let available = vec!["1.js".to_owned()];
        assert_eq!(problems, [Problem::UnknownFile { name: "9.js".into(), available }]);
    }
}

#[test]
fn up_to_a_file_takes_what_is_pending_through_it() {
    let case = case(&["1.js", "2.js", "3.js"], vec![applied("1.js", 1, 10)]);
    let scope = Scope::Through(name("2.js"));
    assert_eq!(case.names(&Request::Up { scope, step: false, force: false }), ["2.js"]);
}

#[test]
fn down_to_a_file_keeps_it_and_reverts_what_was_applied_after_it() {
    let entries = vec![applied("1.js", 2, 30), applied("2.js", 1, 10), applied("3.js", 3, 40)];
    let case = case(&["1.js", "2.js", "3.js"], entries);
    assert_eq!(case.names(&down(Selection::To(name("2.js")))), ["3.js", "1.js"]);
}

#[test]
fn down_reverts_the_last_batch_latest_first() {
    let entries = vec![applied("1.js", 1, 10), applied("2.js", 2, 20), applied("3.js", 2, 30)];
    let case = case(&["1.js", "2.js", "3.js"], entries);
    assert_eq!(case.names(&down(Selection::LastBatch)), ["3.js", "2.js"]);
    assert_eq!(case.names(&down(Selection::Batch(1))), ["1.js"]);
    assert_eq!(case.names(&down(Selection::Steps(3))), ["3.js", "2.js", "1.js"]);
    assert_eq!(case.names(&down(Selection::File(name("2.js")))), ["2.js"]);
}

#[test]
fn down_of_what_is_not_applied_is_a_problem() {
    let problems =
        case(&["1.js"], vec![]).plan(&down(Selection::File(name("1.js")))).expect_err("impossible");
    assert_eq!(problems, [Problem::NotApplied { name: "1.js".into(), applied: vec![] }]);
}

#[test]
fn down_refuses_all_missing_and_edited_files_before_it_reverts_any() {
    let mut edited = applied("2.js", 1, 20);
    edited.checksum = Some("0".repeat(64));
    let entries = vec![applied("1.js", 1, 10), edited, applied("3.js", 1, 30)];
    let problems =
        case(&["2.js", "3.js"], entries).plan(&down(Selection::LastBatch)).expect_err("impossible");
    assert_eq!(
        problems,
        [
            Problem::FileMissing { name: "1.js".into() },
            Problem::Edited { names: vec!["2.js".into()] },
        ]
    );
}

#[test]
fn drift_is_a_warning_and_under_strict_a_problem() {
    let mut edited = applied("1.js", 1, 10);
    edited.checksum = Some("0".repeat(64));
    let mut case = case(&["1.js"], vec![edited, applied("2.js", 1, 20)]);
    let warnings = case.plan(&UP).expect("a possible plan").warnings;
    let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["CHECKSUM_MISMATCH", "FILE_MISSING"]);
    case.policy.strict = true;
    assert_eq!(case.plan(&UP).expect_err("impossible").len(), 2);
}

#[test]
fn a_late_file_is_a_warning_a_problem_or_nothing_as_configured() {
    let mut case = case(&["1.js", "2.js"], vec![applied("2.js", 1, 10)]);
    assert_eq!(case.plan(&UP).expect("a possible plan").warnings[0].code, "OUT_OF_ORDER");
    case.policy.out_of_order = OutOfOrder::Allow;
    assert_eq!(case.plan(&UP).expect("a possible plan").warnings, []);
    case.policy.out_of_order = OutOfOrder::Error;
    assert!(matches!(case.plan(&UP).expect_err("impossible")[0], Problem::OutOfOrder { .. }));
}

fn warnings(case: &Case) -> Vec<(&'static str, Vec<String>)> {
    let plan = case.plan(&UP).expect("a possible plan");
    plan.warnings.into_iter().map(|warning| (warning.code, warning.names)).collect()
}

fn said(code: &'static str, names: [&str; 2]) -> Vec<(&'static str, Vec<String>)> {
    vec![(code, names.map(str::to_owned).to_vec())]
}

#[test]
fn numbers_that_do_not_sort_as_numbers_are_a_warning_while_one_of_them_is_pending() {
    let mixed = ["10-b.js", "2-a.js"];
    assert_eq!(warnings(&case(&mixed, vec![])), said("NUMBER_ORDER", mixed));
    let one_applied = vec![applied("10-b.js", 1, 1)];
    assert!(warnings(&case(&mixed, one_applied)).contains(&said("NUMBER_ORDER", mixed)[0]));
    let both = vec![applied("10-b.js", 1, 1), applied("2-a.js", 1, 2)];
    assert_eq!(warnings(&case(&mixed, both)), []);

    let stamps = ["20240101000000-a.js", "20250101-b.js"];
    assert_eq!(warnings(&case(&stamps, vec![])), said("NUMBER_ORDER", stamps));
    let fine = ["0001-a.js", "0010-b.js", "01-c.js", "2024-d.js", "20240101000000123-e.js", "f.js"];
    assert_eq!(warnings(&case(&fine, vec![])), said("NUMBER_ORDER", ["0010-b.js", "01-c.js"]));
    assert_eq!(warnings(&case(&["0001-a.js", "0010-b.js", "2024-d.js", "f.js"], vec![])), []);
}

#[test]
fn a_pending_file_with_the_content_of_a_missing_one_may_be_a_rename() {
    let mut moved =
        case(&["2-b.js", "9-a.js"], vec![applied("1-a.js", 1, 1), applied("2-b.js", 1, 2)]);
    moved.files[1].checksum = file("1-a.js").checksum;
    let found = warnings(&moved);
    assert!(found.contains(&said("RENAMED", ["1-a.js", "9-a.js"])[0]), "{found:?}");
    assert!(found.iter().any(|(code, _)| *code == "FILE_MISSING"));

    moved.files[1].checksum = file("another.js").checksum;
    assert!(warnings(&moved).iter().all(|(code, _)| *code != "RENAMED"));
}

#[test]
fn one_name_with_two_extensions_is_a_problem() {
    let problems = case(&["1.js", "1.ts"], vec![]).plan(&UP).expect_err("impossible");
    assert_eq!(problems.len(), 1);
    assert!(matches!(problems[0], Problem::TwoExtensions { .. }));
}

#[test]
fn a_file_that_was_applied_under_another_extension_does_not_run_again() {
    let applied = || vec![entry("1.ts", Status::Applied, 1, 0)];
    let problems = case(&["1.js"], applied()).plan(&UP).expect_err("applied before it was built");
    assert_eq!(problems.len(), 1);
    assert!(matches!(problems[0], Problem::AppliedUnderAnother { .. }));

    let mut marked = applied();
    marked.push(entry("1.js", Status::Applied, 2, 0));
    assert!(case(&["1.js"], marked).plan(&UP).is_ok());
    let reverted = vec![entry("1.ts", Status::Reverted, 1, 0)];
    assert!(case(&["1.js"], reverted).plan(&UP).is_ok());
}

#[test]
fn an_interrupted_down_is_judged_only_under_the_lock() {
    let mut interrupted = entry("1.js", Status::Running, 1, 0);
    interrupted.direction = Some(Direction::Down);
    let case = case(&["1.js"], vec![interrupted]);
    assert!(case.plan_from(&UP, Vantage::BeforeLock).is_ok());
    let problems = case.plan(&UP).expect_err("impossible");
    assert_eq!(problems, [Problem::InterruptedDown { name: "1.js".into() }]);
    assert_eq!(case.names(&down(Selection::LastBatch)), ["1.js"]);
}

fn exporting(exports: Exports) -> HashMap<MigrationName, ModuleFacts> {
    HashMap::from([(name("1.js"), ModuleFacts { name: name("1.js"), exports: Ok(exports) })])
}

const PLAIN: Exports =
    Exports { down: true, use_transaction: None, description: None, on_interrupted: None };

#[test]
fn what_did_not_finish_runs_again_unless_someone_must_look_first() {
    let case = case(&["1.js"], vec![entry("1.js", Status::Failed, 1, 0)]);
    let mut plan = case.plan(&UP).expect("a possible plan");
    assert_eq!(plan.steps[0].rerun_of, Some(Unfinished::Failed));
    let stop = Policy { on_interrupted: OnInterrupted::Stop, ..Policy::default() };
    let mut check =
        |exports, policy| plan.check_exports(&exporting(exports), policy, Vantage::UnderLock);
    assert_eq!(check(PLAIN, Policy::default()), Ok(()));
    assert!(check(PLAIN, stop).is_err());
    // The file's own word wins, and a transaction leaves nothing to look at.
    assert_eq!(
        check(Exports { on_interrupted: Some(OnInterrupted::Retry), ..PLAIN }, stop),
        Ok(())
    );
    assert_eq!(check(Exports { use_transaction: Some(true), ..PLAIN }, stop), Ok(()));
}

#[test]
fn down_without_a_down_is_irreversible() {
    let case = case(&["1.js"], vec![applied("1.js", 1, 10)]);
    let mut plan = case.plan(&down(Selection::LastBatch)).expect("a possible plan");
    let exports = exporting(Exports { down: false, ..PLAIN });
    let problems = plan.check_exports(&exports, Policy::default(), Vantage::UnderLock);
    assert_eq!(problems, Err(vec![Problem::Irreversible { name: "1.js".into() }]));
}

fn redo(file: Option<&str>) -> Request {
    Request::Redo { file: file.map(name) }
}

#[test]
fn redo_takes_the_latest_or_the_one_that_is_named() {
    let entries = vec![applied("1.js", 1, 30), applied("2.js", 2, 20)];
    let case = case(&["1.js", "2.js", "3.js"], entries);
    assert_eq!(case.names(&redo(None)), ["1.js"]);
    assert_eq!(case.names(&redo(Some("2.js"))), ["2.js"]);
    let plan = case.plan(&redo(None)).expect("a possible plan");
    assert_eq!((plan.direction, plan.steps[0].batch), (Direction::Down, Some(1)));
    let problems = case.plan(&redo(Some("3.js"))).expect_err("impossible");
    assert!(matches!(&problems[0], Problem::NotApplied { name, .. } if name == "3.js"));
}

#[test]
fn redo_of_nothing_is_an_empty_plan() {
    assert_eq!(case(&["1.js"], vec![]).names(&redo(None)), [] as [&str; 0]);
}

#[test]
fn redo_asks_neither_for_the_order_nor_whether_its_own_file_was_edited() {
    let mut edited = applied("1.js", 1, 30);
    edited.checksum = Some("0".repeat(64));
    let mut case = case(&["1.js", "2.js"], vec![edited, applied("2.js", 2, 20)]);
    case.policy = Policy { strict: true, out_of_order: OutOfOrder::Error, ..Policy::default() };
    assert_eq!(case.names(&redo(None)), ["1.js"]);
}

#[test]
fn redo_does_not_begin_what_its_second_half_would_refuse() {
    let mut edited = applied("2.js", 1, 10);
    edited.checksum = Some("0".repeat(64));
    let mut case = case(&["1.js", "2.js"], vec![applied("1.js", 1, 30), edited]);
    case.policy.strict = true;
    let problems = case.plan(&redo(Some("1.js"))).expect_err("impossible");
    assert_eq!(problems, [Problem::Edited { names: vec!["2.js".into()] }]);
}

#[test]
fn the_second_half_of_a_redo_is_a_batch_of_its_own() {
    let entries = [entry("1.js", Status::Reverted, 1, 0), applied("2.js", 4, 20)];
    let files = [file("1.js"), file("2.js")];
    let policy = Policy { out_of_order: OutOfOrder::Error, ..Policy::default() };
    let vantage = Vantage::UnderLock;
    let inputs = Inputs { files: &files, entries: &entries, policy, vantage };
    let plan = Plan::again(&name("1.js"), inputs).expect("a possible plan");
    assert_eq!((plan.steps.len(), plan.steps[0].batch), (1, Some(5)));
}

fn mark(file: &str, state: MarkAs) -> Request {
    Request::Mark { name: name(file), state, reason: None }
}

/// The step's batch, or why there is none.
fn marked(case: &Case, file: &str, state: MarkAs) -> Result<Option<i64>, &'static str> {
    let plan = case.plan(&mark(file, state)).map_err(|_| "a problem")?;
    plan.steps.first().map(|step| step.batch).ok_or("nothing to do")
}

#[test]
fn mark_applied_gives_what_was_not_applied_the_next_batch() {
    let entries = vec![
        entry("1.js", Status::Failed, 1, 0),
        entry("2.js", Status::Running, 2, 0),
        entry("3.js", Status::Reverted, 3, 0),
    ];
    let case = case(&["1.js", "2.js", "3.js", "4.js"], entries);
    for file in ["1.js", "2.js", "3.js", "4.js"] {
        assert_eq!(marked(&case, file, MarkAs::Applied), Ok(Some(4)), "{file}");
    }
}

#[test]
fn mark_applied_keeps_the_batch_of_what_was_applied_before() {
    let mut edited = applied("1.js", 1, 10);
    edited.checksum = Some("0".repeat(64));
    let mut interrupted = entry("2.js", Status::Running, 2, 0);
    interrupted.direction = Some(Direction::Down);
    let mut unchecked = applied("3.js", 3, 20);
    unchecked.checksum = None;
    let case = case(&["1.js", "2.js", "3.js"], vec![edited, interrupted, unchecked]);
    for file in ["1.js", "2.js", "3.js"] {
        assert_eq!(marked(&case, file, MarkAs::Applied), Ok(None), "{file}");
    }
}

#[test]
fn a_mark_that_says_what_is_so_already_changes_nothing() {
    let entries = vec![applied("1.js", 1, 10), entry("2.js", Status::Reverted, 1, 0)];
    let case = case(&["1.js", "2.js", "3.js"], entries);
    for (file, state) in
        [("1.js", MarkAs::Applied), ("2.js", MarkAs::Pending), ("3.js", MarkAs::Pending)]
    {
        let plan = case.plan(&mark(file, state)).expect("a possible plan");
        assert_eq!((plan.steps.len(), plan.skipped), (0, vec![name(file)]));
    }
}

#[test]
fn mark_pending_takes_any_entry_and_mark_applied_needs_the_file() {
    let case = case(&["1.js"], vec![applied("gone.js", 1, 10)]);
    assert_eq!(marked(&case, "gone.js", MarkAs::Pending), Ok(None));
    for (file, state) in [("gone.js", MarkAs::Applied), ("never.js", MarkAs::Pending)] {
        let problems = case.plan(&mark(file, state)).expect_err("impossible");
        let available = vec!["1.js".to_owned()];
        assert_eq!(problems, [Problem::UnknownFile { name: file.into(), available }]);
    }
}

proptest! {
    #[test]
    fn an_up_plan_is_every_file_that_is_not_applied_in_code_unit_order(
        files in proptest::collection::btree_set("[0-9a-z]{1,4}", 0..12),
        applied_share in proptest::collection::vec(any::<bool>(), 12),
    ) {
        let mut names: Vec<String> = files.iter().map(|stem| format!("{stem}.js")).collect();
        names.sort_by(|a, b| name(a).cmp_code_units(&name(b)));
        let entries: Vec<Entry> = names
            .iter()
            .zip(applied_share)
            .filter(|(_, applied)| *applied)
            .map(|(text, _)| applied(text, 1, 1))
            .collect();
        let done: HashSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        let expected: Vec<String> = names.iter().filter(|n| !done.contains(*n)).cloned().collect();
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        prop_assert_eq!(case(&texts, entries).names(&UP), expected);
    }
}

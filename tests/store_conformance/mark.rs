//! Entries that are changed by hand, and the history that every change leaves behind.

use mongo_migrate_kit::changelog::entry::{Entry, EntryError, Status};
use mongo_migrate_kit::changelog::store::{
    ChangelogStore, Claim, Expected, Mark, Outcome, Verdict, Written,
};
use mongo_migrate_kit::lock::guard::LeaseGuard;
use mongo_migrate_kit::migration::{Direction, MigrationName, Namespace};

use crate::changelog::{NAME, applied, claim, claims, done, read, settlement, settles};
use crate::worlds::{ChangelogWorld, identity};

on_every_store! {
    a_mark_as_applied_creates_the_entry,
    an_accepted_file_changes_the_checksum_and_nothing_else_of_what_was_applied,
    an_entry_of_1_x_is_marked_under_its_own_id,
    a_mark_as_reverted_takes_the_error_away_and_says_why,
    a_mark_of_an_entry_that_has_moved_is_a_conflict,
    a_run_after_a_mark_forgets_the_reason,
    history_keeps_the_latest_states_in_order,
}

fn mark(expected: Expected, verdict: Verdict, reason: &str) -> Mark {
    Mark {
        name: MigrationName::new(NAME).expect("a bare name"),
        expected,
        verdict,
        reason: Some(reason.to_owned()),
        identity: identity(),
        environment: "test".to_owned(),
        service: Some("orders".to_owned()),
    }
}

fn by_hand() -> Verdict {
    Verdict::Applied { batch: 5, checksum: "cd34".to_owned() }
}

async fn marks(store: &impl ChangelogStore, mark: &Mark) -> Written {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    store.mark(&proof, mark).await
}

/// Runs a body over the entry as it was read.
async fn run(
    store: &impl ChangelogStore,
    before: Option<&Entry>,
    direction: Direction,
    outcome: Outcome,
) -> Entry {
    let claim = Claim { direction, ..claim(Expected::of(before)) };
    let claimed = done(claims(store, &claim).await);
    done(settles(store, &settlement(&claim, &claimed, outcome)).await)
}

fn thrown() -> EntryError {
    EntryError { name: "Error".to_owned(), message: "$no".to_owned() }
}

async fn a_mark_as_applied_creates_the_entry(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let mark = mark(Expected::Absent, by_hand(), "$restored from a backup");
    let entry = done(marks(&store, &mark).await);

    assert_eq!(entry.key.0, format!("\"/{NAME}\""));
    assert_eq!((entry.name.as_str(), &entry.namespace), (NAME, &Namespace::default()));
    assert_eq!((&entry.status, entry.version), (&Status::Applied, Some(1)));
    assert_eq!((entry.batch, entry.duration_ms), (Some(5), Some(0)));
    assert_eq!(entry.checksum.as_deref(), Some("cd34"));
    assert_eq!(entry.origin.as_deref(), Some("mark"));
    assert_eq!(entry.reason.as_deref(), Some("$restored from a backup"));
    assert_eq!(entry.run_id, Some(mark.identity.run_id));
    assert_eq!(
        (entry.executed_by.as_deref(), entry.host.as_deref()),
        (Some("deploy"), Some("build-1"))
    );
    assert!(entry.applied_at.is_some());
    assert_eq!((entry.started_at, entry.direction, &entry.history), (None, None, &vec![]));
    assert_eq!(read(&store).await, [entry]);
}

async fn an_accepted_file_changes_the_checksum_and_nothing_else_of_what_was_applied(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let up = run(&store, None, Direction::Up, applied()).await;
    let verdict = Verdict::Accepted { checksum: "cd34".to_owned() };
    let entry = done(marks(&store, &mark(Expected::of(Some(&up)), verdict, "a typo")).await);

    assert_eq!((&entry.status, entry.version), (&Status::Applied, Some(3)));
    assert_eq!(entry.checksum.as_deref(), Some("cd34"));
    assert_eq!((entry.batch, entry.applied_at), (up.batch, up.applied_at));
    assert_eq!((entry.duration_ms, &entry.origin), (up.duration_ms, &None));
    assert_eq!(entry.reason.as_deref(), Some("a typo"));
    assert_eq!(entry.history, [up.past()]);
}

async fn an_entry_of_1_x_is_marked_under_its_own_id(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.plant_legacy(NAME, "applied").await;
    let legacy = read(&store).await.remove(0);
    let expected = Expected::of(Some(&legacy));
    let entry = done(marks(&store, &mark(expected, Verdict::Reverted, "undone by hand")).await);
    assert_eq!((&entry.key, entry.version), (&legacy.key, Some(1)));
    assert_eq!((&entry.status, entry.applied_at), (&Status::Reverted, legacy.applied_at));
    assert!(entry.reverted_at.is_some());
    assert_eq!(entry.history, [legacy.past()]);
}

async fn a_mark_as_reverted_takes_the_error_away_and_says_why(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let failed = run(&store, None, Direction::Up, Outcome::UpFailed(thrown())).await;
    let expected = Expected::of(Some(&failed));
    let entry = done(marks(&store, &mark(expected, Verdict::Reverted, "cleaned up")).await);
    assert_eq!((&entry.status, &entry.error), (&Status::Reverted, &None));
    assert_eq!(entry.reason.as_deref(), Some("cleaned up"));
    assert_eq!(entry.history[0].error, Some(thrown()));
}

async fn a_mark_of_an_entry_that_has_moved_is_a_conflict(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let up = run(&store, None, Direction::Up, applied()).await;
    let stale = Expected::of(Some(&up));
    let down = run(&store, Some(&up), Direction::Down, Outcome::Reverted).await;
    let written = marks(&store, &mark(stale, by_hand(), "too late")).await;
    assert_eq!(written, Written::Conflict(Some(down.clone())));

    let written = marks(&store, &mark(Expected::Absent, by_hand(), "too late")).await;
    assert_eq!(written, Written::Conflict(Some(down.clone())));
    assert_eq!(read(&store).await, [down]);
}

async fn a_run_after_a_mark_forgets_the_reason(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let marked = done(marks(&store, &mark(Expected::Absent, by_hand(), "by hand")).await);
    let down = run(&store, Some(&marked), Direction::Down, Outcome::Reverted).await;
    assert_eq!((&down.reason, down.origin.as_deref()), (&None, Some("mark")));
    assert_eq!(down.history, [marked.past()]);
    let up = run(&store, Some(&down), Direction::Up, applied()).await;
    assert_eq!((&up.reason, &up.origin), (&None, &None));
}

async fn history_keeps_the_latest_states_in_order(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let mut entry = run(&store, None, Direction::Up, applied()).await;
    let mut past = Vec::new();
    for _ in 0..Entry::HISTORY {
        for (direction, outcome) in
            [(Direction::Down, Outcome::Reverted), (Direction::Up, applied())]
        {
            past.push(entry.past());
            entry = run(&store, Some(&entry), direction, outcome).await;
        }
    }
    assert_eq!(entry.history.len(), Entry::HISTORY);
    assert_eq!(entry.history, past[past.len() - Entry::HISTORY..]);
    assert_eq!(read(&store).await, [entry]);
}

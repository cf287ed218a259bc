//! An entry's life: claimed, settled, claimed again, and what stays true of it meanwhile.

use mongo_migrate_kit::changelog::entry::{Entry, EntryError, Status};
use mongo_migrate_kit::changelog::store::{
    ChangelogStore, Claim, Expected, Outcome, Settlement, Written,
};
use mongo_migrate_kit::lock::guard::LeaseGuard;
use mongo_migrate_kit::migration::{Direction, MigrationName, Namespace};

use crate::worlds::{ChangelogWorld, identity};

on_every_store! {
    a_first_claim_creates_the_entry,
    an_applied_entry_says_when_and_for_how_long,
    a_duration_that_nobody_knows_yet_is_taken_from_the_servers_clock_or_unknown,
    a_down_keeps_what_was_applied_and_a_new_up_forgets_what_was_reverted,
    an_up_that_threw_leaves_a_failed_entry_with_its_error,
    a_down_that_threw_leaves_the_entry_applied_with_its_error,
    an_entry_of_1_x_is_claimed_under_its_own_id,
    namespaces_do_not_see_each_other,
    text_that_looks_like_an_expression_stays_text,
    a_settlement_by_command_needs_what_a_settlement_needs,
}

pub const NAME: &str = "20260101000000-a.js";

pub fn claim(expected: Expected) -> Claim {
    Claim {
        name: MigrationName::new(NAME).expect("a bare name"),
        expected,
        direction: Direction::Up,
        batch: Some(4),
        checksum: Some("ab12".to_owned()),
        description: Some("adds a".to_owned()),
        identity: identity(),
        environment: "test".to_owned(),
        service: Some("orders".to_owned()),
    }
}

pub fn settlement(claim: &Claim, claimed: &Entry, outcome: Outcome) -> Settlement {
    Settlement {
        key: claimed.key.clone(),
        version: claimed.version.expect("a claimed entry has a version"),
        run_id: claim.identity.run_id.clone(),
        outcome,
    }
}

pub fn done(written: Written) -> Entry {
    match written {
        Written::Done(entry) => entry,
        other => panic!("not done: {other:?}"),
    }
}

pub async fn claims(store: &impl ChangelogStore, claim: &Claim) -> Written {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    store.claim(&proof, claim).await
}

pub async fn settles(store: &impl ChangelogStore, settlement: &Settlement) -> Written {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    store.settle(&proof, settlement).await
}

pub async fn read(store: &impl ChangelogStore) -> Vec<Entry> {
    store.entries(&Namespace::default()).await.expect("the changelog can be read")
}

pub fn applied() -> Outcome {
    Outcome::Applied { duration_ms: Some(34) }
}

fn thrown() -> EntryError {
    EntryError { name: "TypeError".to_owned(), message: "$x is not a function".to_owned() }
}

/// Claims an entry as it was read and settles the claim.
async fn run(
    store: &impl ChangelogStore,
    before: Option<&Entry>,
    direction: Direction,
    outcome: Outcome,
) -> Entry {
    let mut claim = claim(Expected::of(before));
    claim.direction = direction;
    let claimed = done(claims(store, &claim).await);
    done(settles(store, &settlement(&claim, &claimed, outcome)).await)
}

async fn a_first_claim_creates_the_entry(world: &impl ChangelogWorld) {
    let store = world.changelog();
    assert_eq!(read(&store).await, []);
    let claim = claim(Expected::Absent);
    let entry = done(claims(&store, &claim).await);

    assert_eq!(entry.key.0, format!("\"/{NAME}\""));
    assert_eq!((entry.name.as_str(), &entry.namespace), (NAME, &Namespace::default()));
    assert_eq!((&entry.status, entry.version), (&Status::Running, Some(1)));
    assert_eq!(entry.run_id.as_ref(), Some(&claim.identity.run_id));
    assert_eq!((entry.direction, entry.batch), (Some(Direction::Up), Some(4)));
    assert_eq!(entry.checksum.as_deref(), Some("ab12"));
    assert_eq!(entry.description.as_deref(), Some("adds a"));
    assert_eq!(entry.executed_by.as_deref(), Some("deploy"));
    assert_eq!(entry.host.as_deref(), Some("build-1"));
    assert!(entry.started_at.is_some());
    assert_eq!((entry.applied_at, entry.reverted_at, entry.duration_ms), (None, None, None));
    assert_eq!(read(&store).await, [entry]);
}

async fn an_applied_entry_says_when_and_for_how_long(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let entry = run(&store, None, Direction::Up, applied()).await;
    assert_eq!((&entry.status, entry.version), (&Status::Applied, Some(2)));
    assert_eq!(entry.duration_ms, Some(34));
    assert!(entry.applied_at >= entry.started_at);
    assert_eq!((entry.batch, entry.reverted_at, &entry.error), (Some(4), None, &None));
    assert_eq!(read(&store).await, [entry]);
}

async fn a_duration_that_nobody_knows_yet_is_taken_from_the_servers_clock_or_unknown(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let outcome = Outcome::Applied { duration_ms: None };
    let entry = run(&store, None, Direction::Up, outcome).await;
    let between = entry.applied_at.zip(entry.started_at).map(|(end, start)| end - start);
    assert!(between.is_some());
    assert_eq!(entry.duration_ms, between.filter(|_| world.measures()));
}

async fn a_down_keeps_what_was_applied_and_a_new_up_forgets_what_was_reverted(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let up = run(&store, None, Direction::Up, applied()).await;

    let mut claim = claim(Expected::of(Some(&up)));
    claim.direction = Direction::Down;
    (claim.batch, claim.checksum, claim.description) = (None, None, None);
    let reverting = done(claims(&store, &claim).await);
    assert_eq!((&reverting.status, reverting.direction), (&Status::Running, Some(Direction::Down)));
    let reverted = done(settles(&store, &settlement(&claim, &reverting, Outcome::Reverted)).await);
    assert_eq!((&reverted.status, reverted.version), (&Status::Reverted, Some(4)));
    assert!(reverted.reverted_at >= reverted.applied_at);
    for entry in [&reverting, &reverted] {
        assert_eq!((entry.batch, entry.applied_at), (up.batch, up.applied_at));
        assert_eq!((&entry.checksum, entry.duration_ms), (&up.checksum, up.duration_ms));
        assert_eq!(entry.description, up.description);
    }

    let again = run(&store, Some(&reverted), Direction::Up, applied()).await;
    assert_eq!((&again.status, again.version), (&Status::Applied, Some(6)));
    assert_eq!(again.reverted_at, None);
    assert_eq!(read(&store).await, [again]);
}

async fn an_up_that_threw_leaves_a_failed_entry_with_its_error(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let failed = run(&store, None, Direction::Up, Outcome::UpFailed(thrown())).await;
    assert_eq!((&failed.status, failed.applied_at), (&Status::Failed, None));
    assert_eq!(failed.error, Some(thrown()));

    let second = claim(Expected::of(Some(&failed)));
    let claimed = done(claims(&store, &second).await);
    assert_eq!(claimed.error, None);
    let entry = done(settles(&store, &settlement(&second, &claimed, applied())).await);
    assert_eq!((&entry.status, &entry.error), (&Status::Applied, &None));
}

async fn a_down_that_threw_leaves_the_entry_applied_with_its_error(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let up = run(&store, None, Direction::Up, applied()).await;
    let entry = run(&store, Some(&up), Direction::Down, Outcome::DownFailed(thrown())).await;
    assert_eq!((&entry.status, entry.direction), (&Status::Applied, Some(Direction::Down)));
    assert_eq!((&entry.error, entry.applied_at), (&Some(thrown()), up.applied_at));
}

async fn an_entry_of_1_x_is_claimed_under_its_own_id(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.plant_legacy(NAME, "applied").await;
    let legacy = read(&store).await.remove(0);
    assert_eq!((&legacy.status, legacy.version), (&Status::Applied, None));
    assert_eq!((legacy.batch, legacy.duration_ms), (Some(3), Some(12)));
    assert_eq!(legacy.applied_at, Some(1_700_000_000_000));

    let reverted = run(&store, Some(&legacy), Direction::Down, Outcome::Reverted).await;
    assert_eq!(reverted.key, legacy.key);
    assert_eq!((&reverted.status, reverted.version), (&Status::Reverted, Some(2)));
    assert_eq!((reverted.batch, &reverted.checksum), (Some(3), &legacy.checksum));
    assert_eq!(read(&store).await, [reverted]);
}

async fn namespaces_do_not_see_each_other(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let orders = Namespace::new(Some("orders".to_owned()));
    let mut theirs = claim(Expected::Absent);
    theirs.identity.namespace = orders.clone();
    let theirs = done(claims(&store, &theirs).await);
    let own = done(claims(&store, &claim(Expected::Absent)).await);

    assert_eq!(theirs.key.0, format!("\"orders/{NAME}\""));
    assert_eq!(store.entries(&orders).await, Ok(vec![theirs]));
    assert_eq!(read(&store).await, [own]);
}

async fn text_that_looks_like_an_expression_stays_text(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let mut claim = claim(Expected::Absent);
    claim.name = MigrationName::new("$name.js").expect("a bare name");
    claim.description = Some("$$ROOT".to_owned());
    claim.identity.user = "$owner".to_owned();
    let claimed = done(claims(&store, &claim).await);
    assert_eq!((claimed.name.as_str(), claimed.key.0.as_str()), ("$name.js", "\"/$name.js\""));
    assert_eq!(claimed.description.as_deref(), Some("$$ROOT"));
    assert_eq!(claimed.executed_by.as_deref(), Some("$owner"));

    let outcome = Outcome::UpFailed(thrown());
    let failed = done(settles(&store, &settlement(&claim, &claimed, outcome)).await);
    assert_eq!(failed.error, Some(thrown()));
}

async fn a_settlement_by_command_needs_what_a_settlement_needs(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let claim = claim(Expected::Absent);
    let claimed = done(claims(&store, &claim).await);
    let mut zombie = settlement(&claim, &claimed, applied());
    zombie.run_id = identity().run_id;
    assert_eq!(world.apply(&store.settle_command(&zombie)).await, 0);

    let outcome = Outcome::Applied { duration_ms: None };
    let command = store.settle_command(&settlement(&claim, &claimed, outcome));
    assert_eq!(world.apply(&command).await, 1);
    assert_eq!(world.apply(&command).await, 0);
    let entry = read(&store).await.remove(0);
    assert_eq!((&entry.status, entry.version), (&Status::Applied, Some(2)));
    assert_eq!((entry.duration_ms.is_some(), entry.applied_at.is_some()), (world.measures(), true));
}

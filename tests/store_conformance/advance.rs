//! One migration is recorded and the next one claimed in one command, or the command stops: nothing is
//! claimed on the strength of a record that was not written.

use mongo_migrate_kit::changelog::entry::{Entry, Status};
use mongo_migrate_kit::changelog::store::{
    Advance, ChangelogStore, Claim, ClaimedEntry, Claiming, Expected, Outcome, Settlement, Written,
};
use mongo_migrate_kit::fault::StoreFault;
use mongo_migrate_kit::lock::guard::LeaseGuard;
use mongo_migrate_kit::lock::memory::Fate;
use mongo_migrate_kit::migration::{Direction, MigrationName};
use mongodb::bson::doc;

use crate::changelog::{
    NAME, applied, claim as claim_of, claims, done, read, settlement as settlement_of, settles,
};
use crate::worlds::{ChangelogWorld, MemoryWorld, Retries, failing_replica_set, identity};

on_every_store! {
    the_record_and_a_first_claim_are_written_together,
    the_record_and_a_claim_of_what_is_there_are_written_together,
    nothing_is_claimed_when_somebody_moved_the_entry_to_be_recorded,
    nothing_is_claimed_and_nothing_created_when_somebody_deleted_the_entry_to_be_recorded,
    a_next_entry_that_appeared_or_changed_is_a_conflict_after_a_written_record,
    a_next_entry_that_somebody_deleted_is_not_created_again,
    what_is_sent_again_recognises_itself,
    a_record_that_an_earlier_attempt_wrote_is_followed_by_the_claim,
    zombies_claim_nothing_however_they_meet_their_successors,
    a_first_claim_that_is_taken_back_leaves_no_entry,
    a_claim_that_is_taken_back_leaves_the_entry_as_it_was,
    a_claim_of_somebody_else_is_not_taken_back,
}

const NEXT: &str = "20260102000000-b.js";

pub async fn advances(
    store: &impl ChangelogStore,
    settlement: &Settlement,
    claim: &Claim,
) -> Advance {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    store.settle_and_claim(&proof, settlement, claim).await
}

async fn withdraws(
    store: &impl ChangelogStore,
    claimed: &ClaimedEntry,
    expected: &Expected,
) -> Result<(), StoreFault> {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    store.withdraw(&proof, claimed, expected).await
}

/// A run's first migration, whose body is done, and the claim of its second.
async fn on_the_way(store: &impl ChangelogStore, expected: Expected) -> (Settlement, Claim) {
    let first = claim_of(Expected::Absent);
    let claimed = done(claims(store, &first).await);
    let settlement = settlement_of(&first, &claimed, applied());
    (settlement, following(&first, expected))
}

/// A claim of the second migration by the same run.
fn following(first: &Claim, expected: Expected) -> Claim {
    let name = MigrationName::new(NEXT).expect("a bare name");
    Claim { name, expected, ..first.clone() }
}

/// The second migration, reverted by a run that is long gone.
async fn reverted_before(store: &impl ChangelogStore) -> Entry {
    let earlier = following(&claim_of(Expected::Absent), Expected::Absent);
    let up = done(claims(store, &earlier).await);
    let up = done(settles(store, &settlement_of(&earlier, &up, applied())).await);
    let mut down = following(&earlier, Expected::of(Some(&up)));
    down.direction = Direction::Down;
    let reverting = done(claims(store, &down).await);
    done(settles(store, &settlement_of(&down, &reverting, Outcome::Reverted)).await)
}

/// The entries of the two migrations.
async fn both(store: &impl ChangelogStore) -> (Option<Entry>, Option<Entry>) {
    let entries = read(store).await;
    let (next, first): (Vec<_>, Vec<_>) = entries.into_iter().partition(|e| e.name == NEXT);
    assert!(first.len() < 2 && next.len() < 2, "{first:?} {next:?}");
    (first.into_iter().next(), next.into_iter().next())
}

fn ours(advance: Advance) -> ClaimedEntry {
    match advance {
        Advance::Settled(Claiming::Ours(claimed)) => claimed,
        other => panic!("not both written: {other:?}"),
    }
}

/// Is the second migration running for the run that claimed it?
fn assert_running(next: &Entry, claim: &Claim, claimed: &ClaimedEntry) {
    assert_eq!((&next.status, next.version), (&Status::Running, Some(claimed.version)));
    assert_eq!((&next.key, next.run_id.as_ref()), (&claimed.key, Some(&claimed.run_id)));
    assert_eq!(claimed.run_id, claim.identity.run_id);
    assert_eq!(next.batch, claim.batch);
}

async fn the_record_and_a_first_claim_are_written_together(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    let claimed = ours(advances(&store, &settlement, &claim).await);

    let (first, next) = both(&store).await;
    let (first, next) = (first.expect("an entry"), next.expect("an entry"));
    assert_eq!((&first.status, first.version), (&Status::Applied, Some(2)));
    assert_eq!(first.duration_ms, Some(34));
    assert!(first.applied_at >= first.started_at && first.error.is_none());
    assert_running(&next, &claim, &claimed);

    let ended = Settlement { key: claimed.key, version: claimed.version, ..settlement };
    assert_eq!(done(settles(&store, &ended).await).status, Status::Applied);
}

async fn the_record_and_a_claim_of_what_is_there_are_written_together(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.plant_legacy(NEXT, "reverted").await;
    let legacy = both(&store).await.1.expect("an entry");
    let (settlement, claim) = on_the_way(&store, Expected::of(Some(&legacy))).await;
    let claimed = ours(advances(&store, &settlement, &claim).await);

    let (first, next) = both(&store).await;
    assert_eq!(first.expect("an entry").status, Status::Applied);
    let next = next.expect("an entry");
    assert_running(&next, &claim, &claimed);
    assert_eq!((&next.key, next.history.len()), (&legacy.key, 1));
}

async fn nothing_is_claimed_when_somebody_moved_the_entry_to_be_recorded(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let before = reverted_before(&store).await;
    let (settlement, claim) = on_the_way(&store, Expected::of(Some(&before))).await;
    let interrupted = both(&store).await.0.expect("an entry");
    let successor = claim_of(Expected::of(Some(&interrupted)));
    let running = done(claims(&store, &successor).await);

    let advance = advances(&store, &settlement, &claim).await;
    assert_eq!(advance, Advance::Conflict(Some(running.clone())));
    let absent = Claim { expected: Expected::Absent, ..claim };
    let advance = advances(&store, &settlement, &absent).await;
    assert_eq!(advance, Advance::Conflict(Some(running.clone())));
    assert_eq!(both(&store).await, (Some(running), Some(before)));
}

async fn nothing_is_claimed_and_nothing_created_when_somebody_deleted_the_entry_to_be_recorded(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    world.remove(&settlement.key).await;
    assert_eq!(advances(&store, &settlement, &claim).await, Advance::Conflict(None));
    assert_eq!(read(&store).await, []);

    // An entry by 1.x has an ObjectId, which no upsert could make up.
    world.plant_legacy(NAME, "reverted").await;
    let legacy = both(&store).await.0.expect("an entry");
    let first = claim_of(Expected::of(Some(&legacy)));
    let claimed = done(claims(&store, &first).await);
    let settlement = settlement_of(&first, &claimed, applied());
    world.remove(&settlement.key).await;
    let advance = advances(&store, &settlement, &following(&first, Expected::Absent)).await;
    assert_eq!((advance, read(&store).await), (Advance::Conflict(None), vec![]));
}

async fn a_next_entry_that_appeared_or_changed_is_a_conflict_after_a_written_record(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let (settlement, first_claim) = on_the_way(&store, Expected::Absent).await;
    let found = reverted_before(&store).await;
    let advance = advances(&store, &settlement, &first_claim).await;
    assert_eq!(advance, Advance::Settled(Claiming::Conflict(Some(found.clone()))));
    let (first, next) = both(&store).await;
    let first = first.expect("an entry");
    assert_eq!((&first.status, next), (&Status::Applied, Some(found.clone())));
    world.remove(&first.key).await;

    let late =
        Expected::Present { key: found.key.clone(), status: Status::Applied, version: Some(2) };
    let (settlement, claim) = on_the_way(&store, late).await;
    let advance = advances(&store, &settlement, &claim).await;
    assert_eq!(advance, Advance::Settled(Claiming::Conflict(Some(found.clone()))));
    let (first, next) = both(&store).await;
    assert_eq!((first.expect("an entry").status, next), (Status::Applied, Some(found)));
}

async fn a_next_entry_that_somebody_deleted_is_not_created_again(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let before = reverted_before(&store).await;
    let (settlement, claim) = on_the_way(&store, Expected::of(Some(&before))).await;
    world.remove(&before.key).await;
    let advance = advances(&store, &settlement, &claim).await;
    assert_eq!(advance, Advance::Settled(Claiming::Conflict(None)));
    let (first, next) = both(&store).await;
    assert_eq!((first.expect("an entry").status, next), (Status::Applied, None));
}

async fn what_is_sent_again_recognises_itself(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let before = reverted_before(&store).await;
    let (settlement, claim) = on_the_way(&store, Expected::of(Some(&before))).await;
    let claimed = ours(advances(&store, &settlement, &claim).await);
    let now = both(&store).await;
    assert_eq!(ours(advances(&store, &settlement, &claim).await), claimed);
    assert_eq!(both(&store).await, now);
}

async fn a_record_that_an_earlier_attempt_wrote_is_followed_by_the_claim(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    let settled = done(settles(&store, &settlement).await);
    let claimed = ours(advances(&store, &settlement, &claim).await);
    let (first, next) = both(&store).await;
    assert_eq!(first, Some(settled));
    assert_running(&next.expect("an entry"), &claim, &claimed);
}

async fn zombies_claim_nothing_however_they_meet_their_successors(world: &impl ChangelogWorld) {
    let store = world.changelog();
    for round in 0..30 {
        let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
        let interrupted = both(&store).await.0.expect("an entry");
        let successor = claim_of(Expected::of(Some(&interrupted)));
        let (advance, taken) =
            tokio::join!(advances(&store, &settlement, &claim), claims(&store, &successor));
        let (first, next) = both(&store).await;
        let first = first.expect("an entry");
        match advance {
            Advance::Settled(Claiming::Ours(claimed)) => {
                assert!(matches!(taken, Written::Conflict(Some(_))), "round {round}: {taken:?}");
                assert_eq!(first.status, Status::Applied, "round {round}");
                assert_running(&next.expect("an entry"), &claim, &claimed);
                world.remove(&claimed.key).await;
            }
            Advance::Conflict(Some(found)) => {
                assert_eq!((done(taken), next), (found, None), "round {round}");
            }
            other => panic!("round {round}: {other:?}"),
        }
        world.remove(&first.key).await;
    }
}

async fn a_first_claim_that_is_taken_back_leaves_no_entry(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    let claimed = ours(advances(&store, &settlement, &claim).await);
    assert_eq!(withdraws(&store, &claimed, &claim.expected).await, Ok(()));
    let (first, next) = both(&store).await;
    assert_eq!((first.expect("an entry").status, next), (Status::Applied, None));
    assert_eq!(withdraws(&store, &claimed, &claim.expected).await, Ok(()));
    done(claims(&store, &claim).await);
}

async fn a_claim_that_is_taken_back_leaves_the_entry_as_it_was(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let before = reverted_before(&store).await;
    let (settlement, claim) = on_the_way(&store, Expected::of(Some(&before))).await;
    let claimed = ours(advances(&store, &settlement, &claim).await);
    assert_eq!(withdraws(&store, &claimed, &claim.expected).await, Ok(()));
    let now = both(&store).await.1.expect("an entry");
    // The version has gone on, so that no late write takes this state for an earlier one.
    let expected = Entry { version: Some(claimed.version + 1), ..before };
    assert_eq!(now, expected);
    assert_eq!(withdraws(&store, &claimed, &claim.expected).await, Ok(()));
    assert_eq!(both(&store).await.1, Some(expected));

    world.remove(&now.key).await;
    world.plant_legacy(NEXT, "failed").await;
    let before = both(&store).await.1.expect("an entry");
    let again = following(&claim, Expected::of(Some(&before)));
    let Claiming::Ours(claimed) = Claiming::of(claims(&store, &again).await, &again) else {
        panic!("not claimed");
    };
    assert_eq!(withdraws(&store, &claimed, &again.expected).await, Ok(()));
    let now = both(&store).await.1.expect("an entry");
    let description = again.description.clone();
    assert_eq!(now, Entry { version: Some(claimed.version + 1), description, ..before });
}

async fn a_claim_of_somebody_else_is_not_taken_back(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    let claimed = ours(advances(&store, &settlement, &claim).await);
    let theirs = ClaimedEntry { run_id: identity().run_id, ..claimed.clone() };
    let now = both(&store).await;
    for expected in [Expected::Absent, Expected::of(now.1.as_ref())] {
        assert_eq!(withdraws(&store, &theirs, &expected).await, Ok(()));
        assert_eq!(both(&store).await, now);
    }
}

#[tokio::test]
async fn in_memory_a_server_that_dies_between_the_two_is_asked_again() {
    for fates in [vec![Fate::ReplyLost], vec![Fate::RequestLost, Fate::ReplyLost]] {
        let world = MemoryWorld::new();
        let store = world.changelog();
        let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
        store.script().then(fates);
        let claimed = ours(advances(&store, &settlement, &claim).await);
        let (first, next) = both(&store).await;
        assert_eq!(first.expect("an entry").version, Some(2));
        assert_running(&next.expect("an entry"), &claim, &claimed);
    }
    let world = MemoryWorld::new();
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    store.script().then([Fate::ReplyLost, Fate::Refused]);
    let advance = advances(&store, &settlement, &claim).await;
    assert!(matches!(advance, Advance::Unknown(_)), "{advance:?}");
}

#[tokio::test]
async fn two_writes_whose_reply_is_lost_are_found_and_not_repeated() {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let not_replicated =
        doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    for how in [not_replicated.clone(), doc! { "closeConnection": true }, doc! { "errorCode": 91 }]
    {
        let store = world.changelog();
        let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
        world.fail("update", 1, how.clone()).await;
        let claimed = ours(advances(&store, &settlement, &claim).await);
        let (first, next) = both(&store).await;
        let first = first.expect("an entry");
        assert_eq!((&first.status, first.version), (&Status::Applied, Some(2)), "{how}");
        assert_running(&next.expect("an entry"), &claim, &claimed);
        world.remove(&first.key).await;
        world.remove(&claimed.key).await;
    }
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    world.fail("update", 3, not_replicated).await;
    let advance = advances(&store, &settlement, &claim).await;
    assert!(matches!(advance, Advance::Unknown(_)), "{advance:?}");
    world.spare().await;
    world.close().await;
}

#[tokio::test]
async fn refused_writes_are_known_not_to_be_written() {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let store = world.changelog();
    let (settlement, claim) = on_the_way(&store, Expected::Absent).await;
    world.fail("update", 1, doc! { "errorCode": 13 }).await;
    let advance = advances(&store, &settlement, &claim).await;
    assert!(matches!(advance, Advance::Refused(_)), "{advance:?}");
    let running = both(&store).await;
    assert_eq!(running.1, None);

    // What a validator says no to is refused, and stops the command just as well.
    let entries = world.entries();
    let forbid = |rule| doc! { "collMod": entries.name(), "validator": rule };
    let database = world.bystander.database(&world.db_name);
    let rule = forbid(doc! { "status": { "$ne": "applied" } });
    database.run_command(rule).await.expect("a validator");
    let advance = advances(&store, &settlement, &claim).await;
    let Advance::Refused(fault) = advance else { panic!("{advance:?}") };
    assert_eq!((fault.server_code, both(&store).await), (Some(121), running));

    let rule = forbid(doc! { "name": { "$ne": NEXT } });
    database.run_command(rule).await.expect("a validator");
    let advance = advances(&store, &settlement, &claim).await;
    let Advance::Settled(Claiming::Refused(fault)) = advance else { panic!("{advance:?}") };
    assert_eq!(fault.server_code, Some(121));
    let (first, next) = both(&store).await;
    assert_eq!((first.expect("an entry").status, next), (Status::Applied, None));
    world.close().await;
}

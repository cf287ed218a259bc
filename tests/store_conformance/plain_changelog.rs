//! The changelog by plain operators: what its verbs send, and what may come between a read and the
//! write that relies on it.

use std::future::Future;

use mongo_migrate_kit::changelog::entry::{EntryError, Status};
use mongo_migrate_kit::changelog::mongo::MongoChangelogStore;
use mongo_migrate_kit::changelog::store::{
    Adoption, Advance, ChangelogStore, Claim, ClaimedEntry, Claiming, Expected, Lookout, Mark,
    Outcome, Verdict, Written,
};
use mongo_migrate_kit::connect::UpdateForm;
use mongo_migrate_kit::lock::guard::LeaseGuard;
use mongo_migrate_kit::migration::{Direction, MigrationName, Namespace};
use mongodb::bson::{Bson, DateTime, Document, doc};

use crate::changelog::{NAME, applied, claim, claims, done, read, settlement, settles};
use crate::wiretap::{Wiretap, oddities};
use crate::worlds::{
    ChangelogWorld, MongoWorld, Retries, failing_replica_set, identity, replica_set, standalone,
};

in_both_forms! {
    odd_shapes_are_treated_alike,
}

fn named(name: &str, expected: Expected) -> Claim {
    let name = MigrationName::new(name).expect("a bare name");
    Claim { name, ..claim(expected) }
}

fn mark(name: &str, expected: Expected, verdict: Verdict) -> Mark {
    Mark {
        name: MigrationName::new(name).expect("a bare name"),
        expected,
        verdict,
        reason: Some("a word".to_owned()),
        identity: identity(),
        environment: "test".to_owned(),
        service: None,
    }
}

/// Runs bodies in every way, on entries of every kind; returns the command for a transaction.
async fn every_write_of_a_run(store: &impl ChangelogStore) -> Document {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    let legacy = read(store).await.remove(0);
    let up = named(NAME, Expected::of(Some(&legacy)));
    let running = done(claims(store, &up).await);
    let error = EntryError { name: "Error".to_owned(), message: "thrown".to_owned() };
    let failed = done(settles(store, &settlement(&up, &running, Outcome::UpFailed(error))).await);
    let again = named(NAME, Expected::of(Some(&failed)));
    let running = done(claims(store, &again).await);
    let ended = settlement(&again, &running, applied());
    let for_a_transaction = store.settle_command(&ended);

    let next = Claim { identity: again.identity.clone(), ..named("b.js", Expected::Absent) };
    let both = store.settle_and_claim(&proof, &ended, &next).await;
    let Advance::Settled(Claiming::Ours(claimed)) = both else { panic!("{both:?}") };
    store.withdraw(&proof, &claimed, &next.expected).await.expect("it is ours");

    let applied = read(store).await.remove(0);
    let down = Claim { direction: Direction::Down, ..named(NAME, Expected::of(Some(&applied))) };
    let running = done(claims(store, &down).await);
    let Claiming::Ours(claimed) = Claiming::of(Written::Done(running), &down) else {
        panic!("not ours")
    };
    store.withdraw(&proof, &claimed, &down.expected).await.expect("it is ours");

    Document::from_reader(for_a_transaction.as_slice()).expect("a command is BSON")
}

/// Changes entries by hand, and adopts one.
async fn every_write_without_a_body(store: &impl ChangelogStore) {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    let by_hand = Verdict::Applied { batch: 5, checksum: "cd34".to_owned() };
    let accepted = Verdict::Accepted { checksum: "ef56".to_owned() };
    let mut marked = done(store.mark(&proof, &mark("c.js", Expected::Absent, by_hand)).await);
    for verdict in [accepted, Verdict::Reverted] {
        let mark = mark("c.js", Expected::of(Some(&marked)), verdict);
        marked = done(store.mark(&proof, &mark).await);
    }
    let name = MigrationName::new("d.js").expect("a bare name");
    let (checksum, identity) = ("ab12".to_owned(), identity());
    let origin = "migrate-mongo";
    let adoption = Adoption { name, batch: 7, applied_at: None, checksum, origin, identity };
    done(store.adopt(&proof, &adoption).await);
}

/// Uses every verb that reads.
async fn every_read(store: &impl ChangelogStore) {
    let (name, other) = (MigrationName::new(NAME), Namespace::new(Some("orders".to_owned())));
    let name = name.expect("a bare name");
    store.name_index(&other, &[&name]).await.expect("indexes can be read");
    for lookout in [Lookout::In("changelog"), Lookout::Everywhere] {
        store.foreign(lookout).await.expect("collections can be listed");
    }
    store.transactions().await.expect("a greeting");
    store.entries(&other).await.expect("a changelog");
}

/// What all verbs of the changelog have sent that is not plain.
async fn said(world: &MongoWorld, form: UpdateForm) -> Vec<String> {
    let tap = Wiretap::on(world).await;
    let store = MongoChangelogStore::new(tap.collection("_mmk_migrations"), form);
    world.plant_legacy(NAME, "reverted").await;
    let for_a_transaction = every_write_of_a_run(&store).await;
    every_write_without_a_body(&store).await;
    every_read(&store).await;
    let mut odd = tap.oddities();
    odd.extend(oddities(&for_a_transaction));
    tap.close().await;
    odd
}

#[tokio::test]
async fn every_verb_of_the_changelog_is_plain_in_operators() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        assert_eq!(said(&world, UpdateForm::operators()).await, Vec::<String>::new());
        world.close().await;
    }
}

#[tokio::test]
async fn what_the_changelog_says_in_pipelines_is_not_taken_for_plain() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        let odd = said(&world, UpdateForm::default()).await;
        for sign in ["a pipeline", "$switch", "$literal", "$concatArrays", "the path $$NOW"] {
            assert!(odd.iter().any(|what| what.starts_with(sign)), "{sign} was overlooked");
        }
        world.close().await;
    }
}

#[tokio::test]
async fn plain_writes_whose_reply_is_lost_are_found_and_not_repeated() {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let world = world.by_operators();
    let store = world.changelog();
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    let not_replicated =
        doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    for how in [not_replicated, doc! { "closeConnection": true }] {
        world.plant_legacy(NAME, "reverted").await;
        let legacy = read(&store).await.remove(0);
        let first = claim(Expected::of(Some(&legacy)));
        world.fail("findAndModify", 2, how.clone()).await;
        let claimed = done(claims(&store, &first).await);
        assert_eq!((claimed.version, claimed.history.len()), (Some(1), 1), "{how}");

        let next = Claim { identity: first.identity.clone(), ..named("b.js", Expected::Absent) };
        world.fail("findAndModify", 2, how.clone()).await;
        let ended = settlement(&first, &claimed, applied());
        let both = store.settle_and_claim(&proof, &ended, &next).await;
        let Advance::Settled(Claiming::Ours(next)) = both else { panic!("{how}: {both:?}") };

        let settled = read(&store).await.remove(0);
        let again = claim(Expected::of(Some(&settled)));
        let claimed = done(claims(&store, &again).await);
        let claimed = ClaimedEntry {
            version: claimed.version.expect("a version"),
            key: claimed.key,
            run_id: again.identity.run_id,
        };
        world.fail("update", 2, how.clone()).await;
        assert_eq!(store.withdraw(&proof, &claimed, &again.expected).await, Ok(()), "{how}");
        let restored = read(&store).await.remove(0);
        assert_eq!((&restored.status, restored.version), (&Status::Applied, Some(4)), "{how}");
        world.remove(&restored.key).await;
        world.remove(&next.key).await;
    }
    // A write that has been carried out is found by the next look; only one that may still come is not.
    world.fail("findAndModify", 3, doc! { "closeConnection": true }).await;
    let written = claims(&store, &claim(Expected::Absent)).await;
    assert!(matches!(written, Written::Unknown(_)), "{written:?}");
    world.spare().await;
    world.close().await;
}

/// Claims, and lets something happen between the look at the entry and the write.
async fn claim_meanwhile(
    world: &MongoWorld,
    claim: &Claim,
    happens: impl Future<Output = ()>,
) -> Written {
    let blocked = doc! { "blockConnection": true, "blockTimeMS": BLOCKED_MS };
    world.fail("findAndModify", 1, blocked).await;
    let store = world.changelog();
    let (written, ()) = tokio::join!(claims(&store, claim), async {
        is_under_way(world).await;
        happens.await;
    });
    written
}

/// Comes back when a write has reached the server and waits there.
async fn is_under_way(world: &MongoWorld) {
    let admin = world.bystander.database("admin");
    let write = doc! { "appName": &world.app_name, "command.findAndModify": { "$exists": true } };
    for _ in 0..BLOCKED_MS / 10 {
        let look = vec![doc! { "$currentOp": {} }, doc! { "$match": write.clone() }];
        let mut found = admin.aggregate(look).await.expect("operations can be listed");
        if found.advance().await.expect("a list") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("no write was seen");
}

#[tokio::test]
async fn what_1_x_writes_between_the_look_and_the_claim_is_remembered() {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    let world = world.by_operators();
    world.plant_legacy(NAME, "applied").await;
    let legacy = read(&world.changelog()).await.remove(0);
    let down = Claim { direction: Direction::Down, ..claim(Expected::of(Some(&legacy))) };
    let at = DateTime::from_millis(1_750_000_000_000);
    let written = claim_meanwhile(&world, &down, async {
        let change = doc! { "$set": { "appliedAt": at, "batch": 9 } };
        world.entries().update_one(doc! { "name": NAME }, change).await.expect("a write");
    });
    let claimed = done(written.await);
    assert_eq!((claimed.applied_at, claimed.batch), (Some(at.timestamp_millis()), Some(9)));
    let past = &claimed.history[0];
    assert_eq!((past.applied_at, past.batch), (claimed.applied_at, claimed.batch));
    world.close().await;
}

#[tokio::test]
async fn an_entry_that_is_made_anew_between_the_look_and_the_claim_is_remembered_as_it_is() {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    let world = world.by_operators();
    let store = world.changelog();
    let interrupted = done(claims(&store, &claim(Expected::Absent)).await);
    let anew = claim(Expected::Absent);
    let successor = claim(Expected::of(Some(&interrupted)));
    // The same status and version, by another run. The write that waits is the only one to be held up.
    let written = claim_meanwhile(&world, &successor, async {
        world.remove(&interrupted.key).await;
        done(claims(&store, &anew).await);
    });
    let claimed = done(written.await);
    assert_eq!(claimed.history[0].run_id, Some(anew.identity.run_id));
    world.close().await;
}

#[tokio::test]
async fn an_entry_that_another_run_takes_between_the_look_and_the_claim_is_a_conflict() {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    let world = world.by_operators();
    let store = world.changelog();
    let interrupted = done(claims(&store, &claim(Expected::Absent)).await);
    let expected = Expected::of(Some(&interrupted));
    let (faster, slower) = (claim(expected.clone()), claim(expected));
    let written = claim_meanwhile(&world, &slower, async {
        done(claims(&store, &faster).await);
    });
    let Written::Conflict(Some(found)) = written.await else { panic!("two have it") };
    assert_eq!(found.run_id, Some(faster.identity.run_id));
    assert_eq!(read(&store).await, [found]);
    world.close().await;
}

/// How long a write is held up: long enough to do something meanwhile.
const BLOCKED_MS: i32 = 1_500;

async fn odd_shapes_are_treated_alike(form: UpdateForm) {
    let Some(world) = replica_set().await else { return };
    let world = world.in_form(form);
    let (store, entries) = (world.changelog(), world.entries());
    let id = format!("/{NAME}");
    // Nothing but an `_id` is no entry, and what has a name is one.
    entries.insert_one(doc! { "_id": &id }).await.expect("an insert");
    let claimed = done(claims(&store, &claim(Expected::Absent)).await);
    assert_eq!((claimed.name.as_str(), claimed.version), (NAME, Some(1)));
    let bare = doc! { "_id": &id, "name": NAME };
    entries.replace_one(doc! { "_id": &id }, &bare).await.expect("a write");
    let written = claims(&store, &claim(Expected::Absent)).await;
    let Written::Conflict(Some(found)) = written else { panic!("{written:?}") };
    assert_eq!(found.status, Status::Other(String::new()));
    let found = entries.find_one(doc! { "_id": &id }).await.expect("a read");
    assert_eq!(found.as_ref(), Some(&bare));

    // What is no history gives way to one, whoever wrote the entry.
    for version in [None, Some(3)] {
        let odd = doc! { "name": NAME, "status": "failed", "history": "none", "error": Bson::Null };
        entries.replace_one(doc! { "_id": &id }, odd).await.expect("a write");
        if let Some(version) = version {
            let set = doc! { "$set": { "version": version } };
            entries.update_one(doc! { "_id": &id }, set).await.expect("a write");
        }
        let before = read(&store).await.remove(0);
        let claimed = done(claims(&store, &claim(Expected::of(Some(&before)))).await);
        assert_eq!((claimed.history, claimed.error), (vec![before.past()], None));
    }
    world.close().await;
}

//! Replies that say no, or nothing: what the stores make of them.

use std::time::Duration;

use mongo_migrate_kit::changelog::store::{Expected, Written};
use mongo_migrate_kit::connect::UpdateForm;
use mongo_migrate_kit::fault::FaultKind;
use mongo_migrate_kit::lock::memory::Fate;
use mongo_migrate_kit::lock::store::{AcquireReply, LockStore, ReleaseReply, RenewReply};
use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::options::IndexOptions;

use crate::changelog::{NAME, applied, claim, claims, done, read, settlement, settles};
use crate::worlds::{
    ChangelogWorld, LockWorld, MemoryWorld, Retries, attempt, failing_replica_set, local_now,
    replica_set, standalone,
};

in_both_forms! {
    a_lease_that_has_not_reached_a_majority_is_unknown_until_it_has,
    a_release_that_deleted_without_a_reply_knows_its_own_work,
    a_primary_that_steps_down_leaves_the_outcome_unknown,
    a_connection_that_breaks_leaves_the_outcome_unknown,
    a_refusal_ends_an_acquire_and_not_a_lease,
    a_reply_that_does_not_come_is_not_waited_for_beyond_a_quarter_of_the_ttl,
}

/// Carried out by the primary, but not known to have reached a majority.
fn not_replicated() -> Document {
    doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } }
}

fn refused() -> Document {
    doc! { "errorCode": 13 }
}

fn is_acquired(reply: &AcquireReply) -> bool {
    matches!(reply, AcquireReply::Acquired { .. })
}

#[tokio::test]
async fn in_memory_an_acquire_whose_reply_was_lost_recognises_itself_when_sent_again() {
    let world = MemoryWorld::new();
    let (lock, attempt) = (world.lock(), attempt());
    lock.script().then([Fate::ReplyLost]);
    assert!(matches!(lock.acquire(&attempt).await, AcquireReply::Unknown(_)));
    assert!(matches!(world.lock().acquire(&crate::worlds::attempt()).await, AcquireReply::Held(_)));
    assert!(is_acquired(&lock.acquire(&attempt).await));
}

#[tokio::test]
async fn in_memory_a_request_that_was_lost_changes_nothing() {
    let world = MemoryWorld::new();
    let (lock, attempt) = (world.lock(), attempt());
    lock.script().then([Fate::RequestLost, Fate::Refused]);
    assert!(matches!(lock.acquire(&attempt).await, AcquireReply::Unknown(_)));
    assert!(matches!(lock.acquire(&attempt).await, AcquireReply::Refused(_)));
    assert_eq!(world.document().await, None);
}

#[tokio::test]
async fn in_memory_a_changelog_write_survives_two_lost_replies_and_not_three() {
    let world = MemoryWorld::new();
    let store = world.changelog();
    store.script().then([Fate::ReplyLost, Fate::RequestLost]);
    let first = claim(Expected::Absent);
    let claimed = done(claims(&store, &first).await);
    store.script().then([Fate::RequestLost; 3]);
    let written = settles(&store, &settlement(&first, &claimed, applied())).await;
    assert!(matches!(written, Written::Unknown(_)), "{written:?}");
    store.script().then([Fate::ReplyLost, Fate::Refused]);
    let written = settles(&store, &settlement(&first, &claimed, applied())).await;
    assert!(matches!(written, Written::Unknown(_)), "{written:?}");
}

async fn a_lease_that_has_not_reached_a_majority_is_unknown_until_it_has(form: UpdateForm) {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    let world = world.in_form(form);
    let (lock, attempt) = (world.lock(), attempt());
    world.fail("findAndModify", 1, not_replicated()).await;
    let reply = lock.acquire(&attempt).await;
    let AcquireReply::Unknown(fault) = reply else { panic!("{reply:?}") };
    assert_eq!((fault.kind, fault.server_code), (FaultKind::Unreachable, Some(64)));
    assert!(is_acquired(&lock.acquire(&attempt).await));

    world.fail("findAndModify", 1, not_replicated()).await;
    assert!(matches!(lock.renew(&attempt.owner).await, RenewReply::Unknown(_)));
    assert_eq!(lock.renew(&attempt.owner).await, RenewReply::Renewed { beats: 3 });

    world.fail("delete", 3, not_replicated()).await;
    assert!(matches!(lock.release(&attempt.owner, None).await, ReleaseReply::Unknown(_)));
    assert_eq!(lock.release(&attempt.owner, None).await, ReleaseReply::NotOurs);
    world.close().await;
}

async fn a_release_that_deleted_without_a_reply_knows_its_own_work(form: UpdateForm) {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let world = world.in_form(form);
    let (lock, attempt) = (world.lock(), attempt());
    assert!(is_acquired(&lock.acquire(&attempt).await));
    world.fail("delete", 1, not_replicated()).await;
    assert_eq!(lock.release(&attempt.owner, None).await, ReleaseReply::Released);
    world.close().await;
}

async fn a_primary_that_steps_down_leaves_the_outcome_unknown(form: UpdateForm) {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let world = world.in_form(form);
    let (lock, attempt) = (world.lock(), attempt());
    for code in [91, 189, 10107, 11600, 11602] {
        world.fail("findAndModify", 1, doc! { "errorCode": code }).await;
        let reply = lock.acquire(&attempt).await;
        assert!(matches!(reply, AcquireReply::Unknown(_)), "{code}: {reply:?}");
        let again = lock.acquire(&attempt).await;
        assert!(is_acquired(&again), "{code}: {again:?}");
    }
    world.close().await;
}

async fn a_connection_that_breaks_leaves_the_outcome_unknown(form: UpdateForm) {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let world = world.in_form(form);
    let (lock, attempt) = (world.lock(), attempt());
    world.fail("findAndModify", 1, doc! { "closeConnection": true }).await;
    let reply = lock.acquire(&attempt).await;
    assert!(matches!(reply, AcquireReply::Unknown(_)), "{reply:?}");
    assert!(is_acquired(&lock.acquire(&attempt).await));
    world.close().await;
}

async fn a_refusal_ends_an_acquire_and_not_a_lease(form: UpdateForm) {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    let world = world.in_form(form);
    let (lock, attempt) = (world.lock(), attempt());
    world.fail("findAndModify", 1, refused()).await;
    let reply = lock.acquire(&attempt).await;
    let AcquireReply::Refused(fault) = reply else { panic!("{reply:?}") };
    assert_eq!((fault.kind, fault.server_code), (FaultKind::Unauthorized, Some(13)));

    assert!(is_acquired(&lock.acquire(&attempt).await));
    world.fail("findAndModify", 1, refused()).await;
    assert!(matches!(lock.renew(&attempt.owner).await, RenewReply::Unknown(_)));
    world.close().await;
}

async fn a_reply_that_does_not_come_is_not_waited_for_beyond_a_quarter_of_the_ttl(
    form: UpdateForm,
) {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    let world = world.in_form(form);
    let mut attempt = attempt();
    let second = Duration::from_secs(1);
    attempt.timing = mongo_migrate_kit::lock::timing::Timing::new(second).expect("a valid TTL");
    let locks = world.connection.collection("_mmk_locks");
    let lock = mongo_migrate_kit::lock::mongo::MongoLockStore::new(
        locks,
        attempt.timing,
        world.form.clone(),
    );
    assert!(is_acquired(&lock.acquire(&attempt).await));

    let blocked = doc! { "blockConnection": true, "blockTimeMS": 5_000 };
    world.fail("findAndModify", 1, blocked).await;
    let sent_at = local_now();
    assert!(matches!(lock.renew(&attempt.owner).await, RenewReply::Unknown(_)));
    let waited = local_now() - sent_at;
    assert!(waited < 3_000, "waited {waited} ms");
    assert!(matches!(lock.renew(&attempt.owner).await, RenewReply::Renewed { .. }));
    world.close().await;
}

#[tokio::test]
async fn a_changelog_write_whose_reply_is_lost_is_found_and_not_repeated() {
    let Some(world) = failing_replica_set(Retries::Off).await else { return };
    let store = world.changelog();
    let first = claim(Expected::Absent);
    world.fail("findAndModify", 2, not_replicated()).await;
    let claimed = done(claims(&store, &first).await);
    assert_eq!(claimed.version, Some(1));
    world.fail("findAndModify", 1, not_replicated()).await;
    let settled = done(settles(&store, &settlement(&first, &claimed, applied())).await);
    assert_eq!((settled.version, read(&store).await), (Some(2), vec![settled]));
    world.close().await;
}

#[tokio::test]
async fn a_changelog_write_that_never_gets_a_reply_is_unknown() {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    world.fail("findAndModify", 3, not_replicated()).await;
    let written = claims(&world.changelog(), &claim(Expected::Absent)).await;
    assert!(matches!(written, Written::Unknown(_)), "{written:?}");
    world.close().await;
}

#[tokio::test]
async fn a_refused_changelog_write_is_known_not_to_be_written() {
    let Some(world) = failing_replica_set(Retries::ByTheDriver).await else { return };
    let store = world.changelog();
    world.fail("findAndModify", 1, refused()).await;
    let written = claims(&store, &claim(Expected::Absent)).await;
    let Written::Refused(fault) = written else { panic!("{written:?}") };
    assert_eq!(fault.kind, FaultKind::Unauthorized);
    assert_eq!(read(&store).await, []);
    world.close().await;
}

/// What every 1.x leaves behind.
async fn index_of_1_x(world: &impl ChangelogWorld, entries: &mongodb::Collection<Document>) {
    world.plant_legacy(NAME, "applied").await;
    let unique = IndexOptions::builder().unique(true).build();
    let index = IndexModel::builder().keys(doc! { "name": 1 }).options(unique).build();
    entries.create_index(index).await.expect("an index");
}

#[tokio::test]
async fn a_namespaced_entry_that_the_old_unique_index_forbids_is_refused() {
    let Some(world) = replica_set().await else { return };
    index_of_1_x(&world, &world.entries()).await;
    let mut namespaced = claim(Expected::Absent);
    namespaced.identity.namespace =
        mongo_migrate_kit::migration::Namespace::new(Some("orders".to_owned()));
    let written = claims(&world.changelog(), &namespaced).await;
    let Written::Refused(fault) = written else { panic!("{written:?}") };
    assert_eq!(fault.server_code, Some(11000));
    assert!(fault.message.contains("name_1"), "{fault}");
    world.close().await;
}

#[tokio::test]
async fn an_entry_that_1_x_wrote_in_between_is_a_conflict_that_shows_it() {
    let Some(world) = replica_set().await else { return };
    index_of_1_x(&world, &world.entries()).await;
    let store = world.changelog();
    let legacy = read(&store).await.remove(0);
    let written = claims(&store, &claim(Expected::Absent)).await;
    assert_eq!(written, Written::Conflict(Some(legacy)));
    world.close().await;
}

#[tokio::test]
async fn reading_creates_nothing() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        assert_eq!(world.lock().inspect().await, Ok(None));
        assert_eq!(read(&world.changelog()).await, []);
        assert_eq!(world.collections().await, Vec::<String>::new());
        world.close().await;
    }
}

#[tokio::test]
async fn only_a_replica_set_has_transactions() {
    for (world, transactions) in [(replica_set().await, true), (standalone().await, false)] {
        let Some(world) = world else { continue };
        let hello = world.connection.hello().await.expect("a greeting");
        assert_eq!(hello.transactions, transactions);
        world.close().await;
    }
}

#[tokio::test]
async fn what_the_connection_string_says_of_concerns_does_not_matter() {
    let Ok(mut uri) = std::env::var("MMK_TEST_MONGO_URI") else { return };
    uri.push_str(if uri.contains('?') { "&" } else { "?" });
    uri.push_str("w=0&readPreference=secondary&readConcernLevel=available&appName=theirs");
    let options = mongo_migrate_kit::connect::ConnectOptions::new(uri, "mmk_concerns", "mmk/ours");
    let connection = mongo_migrate_kit::connect::Connection::open(&options).await;
    let connection = connection.expect("a usable connection string");
    // A set of one has no secondary, so a read that honoured the preference would find no server.
    assert!(connection.hello().await.is_ok());
    let found = connection.collection("anything").find_one(doc! {}).await;
    assert_eq!(found.expect("a read from the primary"), None);
    connection.close().await;
}

//! A server that takes no update pipelines, seen from the changelog: one refusal, and then plain
//! operators. It is a real one behind a relay that turns pipelines away.

use mongo_migrate_kit::changelog::entry::{Entry, Status};
use mongo_migrate_kit::changelog::mongo::MongoChangelogStore;
use mongo_migrate_kit::changelog::store::{
    Advance, ChangelogStore, ClaimedEntry, Claiming, Expected,
};
use mongo_migrate_kit::connect::{ConnectOptions, Connection, UpdateForm};
use mongo_migrate_kit::lock::guard::LeaseGuard;
use mongo_migrate_kit::migration::MigrationName;
use mongodb::bson::{Document, doc};

use crate::changelog::{NAME, applied, claim, claims, done, read, settlement, settles};
use crate::relay::Relay;
use crate::wiretap::oddities;
use crate::worlds::{ChangelogWorld, MongoWorld, replica_set};

/// How a server says no.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// To the command.
    Command,
    /// To one of its writes, where it tells of writes one by one.
    Write,
}

fn refused(refusal: Refusal, command: &Document) -> Option<Document> {
    let writes = ["findAndModify", "update"].iter().any(|name| command.contains_key(name));
    if !writes || !oddities(command).iter().any(|what| what.starts_with("a pipeline")) {
        return None;
    }
    let words = "Failed to parse update: field must be of BSON type object";
    let one_by_one = command.contains_key("updates");
    Some(match refusal {
        Refusal::Write if one_by_one => doc! {
            "ok": 1.0, "n": 0, "nModified": 0,
            "writeErrors": [{ "index": 0, "code": 9, "errmsg": words }],
        },
        Refusal::Write | Refusal::Command => doc! { "ok": 0.0, "code": 9, "errmsg": words },
    })
}

/// A changelog behind a relay, by a store that knows nothing yet.
struct Behind {
    relay: Relay,
    connection: Connection,
    form: UpdateForm,
    store: MongoChangelogStore,
}

impl Behind {
    async fn of(world: &MongoWorld, refusal: Refusal) -> Self {
        let relay = Relay::before(&world.uri, move |command| refused(refusal, command)).await;
        let options = ConnectOptions::new(&relay.uri, &world.db_name, "mmk/refused");
        let connection = Connection::open(&options).await.expect("a usable connection string");
        let form = UpdateForm::default();
        let entries = connection.collection("_mmk_migrations");
        let store = MongoChangelogStore::new(entries, form.clone());
        Self { relay, connection, form, store }
    }

    /// The first refusal was the last.
    async fn close(self) {
        assert_eq!((self.relay.answered(), self.form.is_operators()), (1, true));
        self.connection.close().await;
    }
}

/// Both ways to say no, each with a world of its own.
async fn worlds() -> Vec<(MongoWorld, Refusal)> {
    let mut worlds = Vec::new();
    for refusal in [Refusal::Command, Refusal::Write] {
        worlds.extend(replica_set().await.map(|world| (world, refusal)));
    }
    worlds
}

fn as_claimed(entry: Entry) -> ClaimedEntry {
    ClaimedEntry {
        key: entry.key,
        version: entry.version.expect("a version"),
        run_id: entry.run_id.expect("a run"),
    }
}

#[tokio::test]
async fn a_claim_is_sent_again_by_operators_and_all_that_follows_is_sent_so_at_once() {
    for (world, refusal) in worlds().await {
        let behind = Behind::of(&world, refusal).await;
        let store = &behind.store;
        let first = claim(Expected::Absent);
        let claimed = done(claims(store, &first).await);
        let up = done(settles(store, &settlement(&first, &claimed, applied())).await);
        let second = claim(Expected::of(Some(&up)));
        let running = done(claims(store, &second).await);
        assert_eq!(running.history, [up.past()]);
        let command = store.settle_command(&settlement(&second, &running, applied()));
        assert_eq!(world.apply(&command).await, 1);
        assert_eq!(read(store).await[0].status, Status::Applied);
        behind.close().await;
        world.close().await;
    }
}

#[tokio::test]
async fn a_record_with_a_claim_is_sent_again_as_two() {
    for (world, refusal) in worlds().await {
        let (behind, direct) = (Behind::of(&world, refusal).await, world.changelog());
        let first = claim(Expected::Absent);
        let claimed = done(claims(&direct, &first).await);
        let ended = settlement(&first, &claimed, applied());
        let mut next = claim(Expected::Absent);
        next.name = MigrationName::new("b.js").expect("a bare name");
        let guard = LeaseGuard::unlocked();
        let proof = guard.proof().expect("no lock, no loss");
        let advance = behind.store.settle_and_claim(&proof, &ended, &next).await;
        assert!(matches!(advance, Advance::Settled(Claiming::Ours(_))), "{refusal:?}: {advance:?}");
        let entries = read(&direct).await.into_iter().map(|entry| (entry.name, entry.status));
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let both = [(NAME, Status::Applied), ("b.js", Status::Running)];
        assert_eq!(entries, both.map(|(name, status)| (name.to_owned(), status)));
        behind.close().await;
        world.close().await;
    }
}

#[tokio::test]
async fn a_claim_is_taken_back_by_operators() {
    for (world, refusal) in worlds().await {
        let (behind, direct) = (Behind::of(&world, refusal).await, world.changelog());
        world.plant_legacy(NAME, "failed").await;
        let before = read(&direct).await.remove(0);
        let claim = claim(Expected::of(Some(&before)));
        let claimed = as_claimed(done(claims(&direct, &claim).await));
        let guard = LeaseGuard::unlocked();
        let proof = guard.proof().expect("no lock, no loss");
        assert_eq!(behind.store.withdraw(&proof, &claimed, &claim.expected).await, Ok(()));
        let now = read(&direct).await.remove(0);
        let description = claim.description;
        assert_eq!(now, Entry { version: Some(claimed.version + 1), description, ..before });
        behind.close().await;
        world.close().await;
    }
}

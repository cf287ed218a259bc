//! A server that takes no pipelines, made of one that does: a relay answers in its place, in the words
//! that such servers have been heard to use.

use mongo_migrate_kit::connect::{ConnectOptions, Connection, UpdateForm};
use mongo_migrate_kit::lock::mongo::MongoLockStore;
use mongo_migrate_kit::lock::store::{ArmReply, LockStore, RenewReply};
use mongodb::bson::{Document, doc};

use crate::fence::{acquired, arming};
use crate::plain::every_verb;
use crate::relay::Relay;
use crate::wiretap::oddities;
use crate::worlds::{LockWorld, MongoWorld, replica_set, standalone, timing};

/// Which of the two it minds first where there are both.
#[derive(Clone, Copy)]
enum Minds {
    ThePipeline,
    TheProjection,
}

/// A connection to a server that refuses both.
struct Refusing {
    connection: Connection,
    relay: Relay,
}

impl Refusing {
    async fn world(world: &MongoWorld, minds: Minds) -> Self {
        let relay = Relay::before(&world.uri, move |command| refusal(command, minds)).await;
        let options = ConnectOptions::new(&relay.uri, &world.db_name, "mmk/refusing");
        let connection = Connection::open(&options).await.expect("a usable connection string");
        Self { connection, relay }
    }

    fn lock(&self, form: &UpdateForm) -> MongoLockStore {
        MongoLockStore::new(self.connection.collection("_mmk_locks"), timing(), form.clone())
    }

    fn refused(&self) -> u32 {
        self.relay.answered()
    }
}

fn refusal(command: &Document, minds: Minds) -> Option<Document> {
    let name = command.keys().next()?;
    if !["findAndModify", "find", "update", "delete"].contains(&name.as_str()) {
        return None;
    }
    let odd = oddities(command);
    let says = |word: &str| odd.iter().any(|what| what.starts_with(word));
    let (code, words) = match (says("a pipeline"), says("a computed"), minds) {
        (true, false, _) | (true, true, Minds::ThePipeline) => {
            (9, "Failed to parse update: field must be of BSON type object")
        }
        (_, true, _) => (2, "Unsupported projection option: endsAt"),
        (false, false, _) if odd.is_empty() => return None,
        (false, false, _) => (303, "Feature not supported"),
    };
    Some(doc! { "ok": 0.0, "code": code, "errmsg": words })
}

#[tokio::test]
async fn every_verb_works_and_no_pipeline_is_sent_after_the_first_refusal() {
    // One for the look at the lock, which teaches nothing, and the rest for the acquire.
    for (minds, refusals) in [(Minds::ThePipeline, 2), (Minds::TheProjection, 3)] {
        for world in [replica_set().await, standalone().await].into_iter().flatten() {
            let refusing = Refusing::world(&world, minds).await;
            every_verb(&world, &refusing.lock(&UpdateForm::default())).await;
            assert_eq!(refusing.refused(), refusals);
            refusing.connection.close().await;
            world.close().await;
        }
    }
}

#[tokio::test]
async fn a_refused_renewal_and_a_refused_arm_are_sent_again_in_operators() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        let holder = acquired(&world).await;
        let refusing = Refusing::world(&world, Minds::ThePipeline).await;
        let renewed = refusing.lock(&UpdateForm::default()).renew(&holder.owner).await;
        assert_eq!(renewed, RenewReply::Renewed { beats: 1 });
        let form = UpdateForm::default();
        let armed = refusing.lock(&form).arm(&holder.owner, &arming(&holder, &[])).await;
        assert_eq!(armed, ArmReply::Armed { token: 1 });
        assert!(form.is_operators());
        assert_eq!(refusing.refused(), 2);
        refusing.connection.close().await;
        world.close().await;
    }
}

#[tokio::test]
async fn a_look_at_the_lock_and_its_removal_need_no_projection_and_teach_nothing() {
    let Some(world) = replica_set().await else { return };
    let holder = acquired(&world).await;
    let (refusing, form) =
        (Refusing::world(&world, Minds::TheProjection).await, UpdateForm::default());
    let lock = refusing.lock(&form);
    let shown = lock.inspect().await.expect("a reply").expect("a holder");
    assert_eq!(shown.owner.as_deref(), Some(holder.owner.as_str()));
    assert!(!shown.expired && shown.expires_at.is_some_and(|end| end > shown.now));
    world.age(timing().ttl() * 2).await;
    assert!(lock.inspect().await.expect("a reply").is_some_and(|shown| shown.expired));
    let removed = lock.force_release(Some(&holder.owner)).await.expect("a reply");
    assert!(removed.is_some_and(|removed| removed.expired));
    assert!(!form.is_operators());
    assert_eq!(refusing.refused(), 3);
    refusing.connection.close().await;
    world.close().await;
}

//! What the lock puts to a server in operators is plain: everything that is sent is looked through.

use mongo_migrate_kit::connect::UpdateForm;
use mongo_migrate_kit::lock::lease::OwnerToken;
use mongo_migrate_kit::lock::mongo::MongoLockStore;
use mongo_migrate_kit::lock::store::{
    AcquireReply, ArmReply, Attempt, LockStore, ReleaseReply, RenewReply,
};
use mongodb::bson::Document;
use serde_json::json;

use crate::fence::arming;
use crate::wiretap::{Wiretap, oddities};
use crate::worlds::{LockWorld, MongoWorld, attempt, replica_set, standalone, timing};

async fn acquired(lock: &MongoLockStore) -> Attempt {
    let attempt = attempt();
    let reply = lock.acquire(&attempt).await;
    assert!(matches!(reply, AcquireReply::Acquired { .. }), "{reply:?}");
    attempt
}

/// Every verb of the lock, each on every way that it can take on a healthy server.
pub async fn every_verb(world: &MongoWorld, lock: &MongoLockStore) {
    assert_eq!(lock.inspect().await, Ok(None));
    let dead = acquired(lock).await;
    let again = lock.acquire(&dead).await;
    assert!(matches!(again, AcquireReply::Acquired { .. }), "{again:?}");
    assert!(matches!(lock.acquire(&attempt()).await, AcquireReply::Held(_)));
    assert_eq!(lock.arm(&dead.owner, &arming(&dead, &[])).await, ArmReply::Armed { token: 1 });
    assert_eq!(lock.arm(&dead.owner, &arming(&dead, &[])).await, ArmReply::Armed { token: 2 });
    assert_eq!(lock.renew(&dead.owner).await, RenewReply::Renewed { beats: 4 });
    world.age(timing().ttl() * 2).await;

    let holder = acquired(lock).await;
    assert_eq!(lock.renew(&dead.owner).await, RenewReply::Gone);
    assert_eq!(lock.arm(&dead.owner, &arming(&dead, &[])).await, ArmReply::Gone);
    assert!(matches!(
        lock.arm(&holder.owner, &arming(&holder, &[&dead])).await,
        ArmReply::Armed { .. }
    ));
    assert!(lock.unsettled().await.is_ok_and(|unsettled| unsettled.len() == 1));
    let shown = lock.inspect().await.expect("a reply").and_then(|holder| holder.owner);
    assert_eq!(shown.as_deref(), Some(holder.owner.as_str()));
    let released = lock.release(&holder.owner, Some(&holder.identity.run_id)).await;
    assert_eq!(released, ReleaseReply::Released);

    world.plant(Some(json!({}))).await;
    let holder = acquired(lock).await;
    let stranger = OwnerToken::random();
    assert_eq!(lock.force_release(Some(&stranger)).await, Ok(None));
    assert!(matches!(lock.force_release(Some(&holder.owner)).await, Ok(Some(_))));
    world.plant(Some(json!({ "owner": 7 }))).await;
    assert!(matches!(lock.force_release(None).await, Ok(Some(_))));
}

/// What every verb of the lock has sent that is not plain.
async fn said(world: &MongoWorld, form: UpdateForm) -> Vec<String> {
    let tap = Wiretap::on(world).await;
    let lock = MongoLockStore::new(tap.collection("_mmk_locks"), timing(), form);
    every_verb(world, &lock).await;
    let mut odd = tap.oddities();
    let fence = Document::from_reader(lock.fence_command(1).as_slice()).expect("BSON");
    odd.extend(oddities(&fence));
    tap.close().await;
    odd
}

#[tokio::test]
async fn every_verb_of_the_lock_is_plain_in_operators() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        assert_eq!(said(&world, UpdateForm::operators()).await, Vec::<String>::new());
        world.close().await;
    }
}

#[tokio::test]
async fn what_is_said_in_pipelines_is_not_taken_for_plain() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        let odd = said(&world, UpdateForm::default()).await;
        for sign in ["a pipeline", "a computed endsAt", "$switch", "the path $$NOW"] {
            assert!(odd.iter().any(|what| what.starts_with(sign)), "{sign} was overlooked");
        }
        world.close().await;
    }
}

//! Hearing of a release or of a take-over, and of nothing else.

use std::time::Duration;

use mongo_migrate_kit::lock::lease::{OwnerToken, RunId};
use mongo_migrate_kit::lock::store::{Arming, Attempt, Interest, LockStore, UnsettledRun, Wakes};
use tokio::time::timeout;

use crate::worlds::{LockWorld, attempt, replica_set, timing};

on_every_store! {
    a_release_is_heard_of_within_a_second,
    a_holder_does_not_hear_its_own_renewals,
    a_holder_hears_of_a_takeover,
    a_holder_hears_that_its_lock_was_removed,
    a_waiter_does_not_hear_of_a_takeover,
    what_happens_right_after_a_watch_stands_is_heard,
}

/// Longer than any event takes to arrive, for those that must not.
const SILENCE: Duration = Duration::from_millis(400);

/// A watch, wherever the store can tell.
async fn watch(world: &impl LockWorld, interest: Interest) -> Option<Wakes> {
    match world.lock().watch(interest).await {
        Ok(wakes) => Some(wakes),
        Err(fault) => {
            assert_eq!(world.election().await, None, "only a standalone can't tell: {fault}");
            None
        }
    }
}

async fn acquired(world: &impl LockWorld) -> Attempt {
    let attempt = attempt();
    world.lock().acquire(&attempt).await;
    attempt
}

async fn is_heard(wakes: &mut Wakes) -> bool {
    timeout(Duration::from_secs(1), wakes.recv()).await == Ok(Some(()))
}

async fn is_silent(wakes: &mut Wakes) -> bool {
    timeout(SILENCE, wakes.recv()).await.is_err()
}

fn taken_from(attempt: &Attempt) -> Interest {
    Interest::TakenFrom(attempt.owner.clone())
}

async fn a_release_is_heard_of_within_a_second(world: &impl LockWorld) {
    let holder = acquired(world).await;
    let Some(mut wakes) = watch(world, Interest::Freed).await else { return };
    world.lock().renew(&holder.owner).await;
    assert!(is_silent(&mut wakes).await);
    world.lock().release(&holder.owner, None).await;
    assert!(is_heard(&mut wakes).await);
}

async fn a_holder_does_not_hear_its_own_renewals(world: &impl LockWorld) {
    let holder = acquired(world).await;
    let Some(mut wakes) = watch(world, taken_from(&holder)).await else { return };
    let identity = &holder.identity;
    let run = UnsettledRun {
        run_id: identity.run_id.clone(),
        namespace: identity.namespace.clone(),
        changelog: identity.changelog.clone(),
        host: None,
        pid: None,
    };
    world.lock().acquire(&holder).await;
    world.lock().renew(&holder.owner).await;
    world.lock().arm(&holder.owner, &Arming { run, settled: vec![RunId::random()] }).await;
    let stranger = OwnerToken::random();
    world.lock().release(&stranger, Some(&holder.identity.run_id)).await;
    assert!(is_silent(&mut wakes).await);
}

async fn a_holder_hears_of_a_takeover(world: &impl LockWorld) {
    let holder = acquired(world).await;
    let Some(mut wakes) = watch(world, taken_from(&holder)).await else { return };
    world.age(timing().ttl() * 2).await;
    acquired(world).await;
    assert!(is_heard(&mut wakes).await);
}

async fn a_holder_hears_that_its_lock_was_removed(world: &impl LockWorld) {
    let holder = acquired(world).await;
    let Some(mut wakes) = watch(world, taken_from(&holder)).await else { return };
    world.lock().force_release(Some(&holder.owner)).await.expect("a reply");
    assert!(is_heard(&mut wakes).await);
    acquired(world).await;
    assert!(is_heard(&mut wakes).await);
}

async fn a_waiter_does_not_hear_of_a_takeover(world: &impl LockWorld) {
    acquired(world).await;
    let Some(mut wakes) = watch(world, Interest::Freed).await else { return };
    world.age(timing().ttl() * 2).await;
    let successor = acquired(world).await;
    assert!(is_silent(&mut wakes).await);
    world.lock().release(&successor.owner, None).await;
    assert!(is_heard(&mut wakes).await);
}

async fn what_happens_right_after_a_watch_stands_is_heard(world: &impl LockWorld) {
    for _ in 0..20 {
        let holder = acquired(world).await;
        let Some(mut wakes) = watch(world, Interest::Freed).await else { return };
        world.lock().release(&holder.owner, None).await;
        assert!(is_heard(&mut wakes).await);
    }
}

#[tokio::test]
async fn a_dropped_collection_frees_its_lock_and_ends_the_watch() {
    let Some(world) = replica_set().await else { return };
    let holder = acquired(&world).await;
    for interest in [Interest::Freed, taken_from(&holder)] {
        acquired(&world).await;
        let mut wakes = watch(&world, interest).await.expect("a replica set can tell");
        world.locks().drop().await.expect("its own collection");
        assert!(is_heard(&mut wakes).await);
        let closed = async { while wakes.recv().await.is_some() {} };
        assert!(timeout(Duration::from_secs(5), closed).await.is_ok());
    }
    world.close().await;
}

#[tokio::test]
async fn a_lock_that_a_runner_of_1_x_takes_over_is_heard_of() {
    let Some(world) = replica_set().await else { return };
    let holder = acquired(&world).await;
    let mut wakes = watch(&world, taken_from(&holder)).await.expect("a replica set can tell");
    let id = mongodb::bson::doc! { "_id": "mmk_lock" };
    let its_own_way = mongodb::bson::doc! { "$set": { "owner": "1.3", "pid": 1, "host": "old" } };
    world.locks().update_one(id, its_own_way).await.expect("an update");
    assert!(is_heard(&mut wakes).await);
    world.close().await;
}

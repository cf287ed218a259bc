//! Take-overs when the primary has changed, or its clock has: what must have stood still, and what
//! is taken although it is not over.

use std::time::Duration;

use mongo_migrate_kit::lock::store::{AcquireReply, Attempt, LockStore, Unmoved, Watched};
use serde_json::{Value, json};

use crate::worlds::{LockWorld, MemoryWorld, attempt, timing};

on_every_store! {
    an_expired_lease_of_another_election_is_not_taken_at_once,
    an_expired_lease_of_another_election_is_taken_after_it_stood_still,
    an_expired_lease_that_moved_under_our_eyes_is_not_taken,
    a_live_lease_is_not_taken_after_a_grace,
    a_lease_that_stood_still_throughout_is_taken_whatever_its_expiry_says,
    a_lease_that_moved_is_not_taken_however_long_it_was_watched,
    a_lease_of_1_x_or_of_an_unknown_version_is_never_doubted,
    a_lease_of_1_x_is_taken_under_any_election,
    beats_are_shown_of_our_own_kind_only,
    a_renewal_moves_a_lease_to_the_election_of_now,
}

const HOUR_MS: i64 = 3_600_000;

/// A lease of our kind that was written under a primary which is none any more.
async fn plant_ours(world: &impl LockWorld, ends_in_ms: i64, beats: i64) {
    let now = world.now().await;
    world
        .plant(Some(json!({
            "v": 2, "owner": "theirs", "leaseOwner": "theirs", "beats": beats, "ttlMs": 60_000,
            "lockedAt": { "$date": now - 61_000 }, "expiresAt": { "$date": now + ends_in_ms },
            "electionId": { "$oid": "7fffffff0000000000000bad" },
        })))
        .await;
}

fn doubting(watched: Watched, beats: i64) -> Attempt {
    Attempt { unmoved: Some(Unmoved { owner: "theirs".into(), beats, watched }), ..attempt() }
}

async fn is_taken(world: &impl LockWorld, attempt: &Attempt) -> bool {
    match world.lock().acquire(attempt).await {
        AcquireReply::Acquired { .. } => true,
        AcquireReply::Held(_) => false,
        other => panic!("neither taken nor held: {other:?}"),
    }
}

async fn an_expired_lease_of_another_election_is_not_taken_at_once(world: &impl LockWorld) {
    plant_ours(world, -1_000, 4).await;
    let AcquireReply::Held(holder) = world.lock().acquire(&attempt()).await else {
        panic!("a clock that the holder never met was believed")
    };
    assert!(holder.expired);
    assert_eq!((holder.owner.as_deref(), holder.beats), (Some("theirs"), Some(4)));
}

async fn an_expired_lease_of_another_election_is_taken_after_it_stood_still(
    world: &impl LockWorld,
) {
    plant_ours(world, -1_000, 4).await;
    let reply = world.lock().acquire(&doubting(Watched::Grace, 4)).await;
    let AcquireReply::Acquired { took_over_from, election_moved } = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(took_over_from.and_then(|holder| holder.owner).as_deref(), Some("theirs"));
    assert!(!election_moved);
}

async fn an_expired_lease_that_moved_under_our_eyes_is_not_taken(world: &impl LockWorld) {
    plant_ours(world, -1_000, 5).await;
    assert!(!is_taken(world, &doubting(Watched::Grace, 4)).await);
    let somebody_else = Unmoved { owner: "other".into(), beats: 5, watched: Watched::Grace };
    assert!(!is_taken(world, &Attempt { unmoved: Some(somebody_else), ..attempt() }).await);
}

async fn a_live_lease_is_not_taken_after_a_grace(world: &impl LockWorld) {
    plant_ours(world, 10_000, 4).await;
    assert!(!is_taken(world, &doubting(Watched::Grace, 4)).await);
}

async fn a_lease_that_stood_still_throughout_is_taken_whatever_its_expiry_says(
    world: &impl LockWorld,
) {
    plant_ours(world, HOUR_MS, 4).await;
    assert!(is_taken(world, &doubting(Watched::Throughout, 4)).await);
    plant_ours(world, -1_000, 4).await;
    assert!(is_taken(world, &doubting(Watched::Throughout, 4)).await);
}

async fn a_lease_that_moved_is_not_taken_however_long_it_was_watched(world: &impl LockWorld) {
    for ends_in_ms in [-1_000, HOUR_MS] {
        plant_ours(world, ends_in_ms, 5).await;
        assert!(!is_taken(world, &doubting(Watched::Throughout, 4)).await);
    }
}

async fn a_lease_of_1_x_or_of_an_unknown_version_is_never_doubted(world: &impl LockWorld) {
    let now = world.now().await;
    let locked_at = json!({ "$date": now - 1_000 });
    for document in [
        json!({ "owner": "theirs", "beats": 4, "lockedAt": locked_at }),
        json!({ "owner": "theirs", "leaseOwner": "ours", "beats": 4, "lockedAt": locked_at }),
        json!({ "v": 3, "owner": "theirs", "leaseOwner": "theirs", "beats": 4 }),
        json!({ "v": "2", "owner": "theirs", "leaseOwner": "theirs", "beats": 4 }),
    ] {
        world.plant(Some(document.clone())).await;
        for watched in [Watched::Grace, Watched::Throughout] {
            assert!(!is_taken(world, &doubting(watched, 4)).await, "{document}");
        }
        assert_eq!(world.document().await.map(Value::Object), Some(document));
    }
}

async fn a_lease_of_1_x_is_taken_under_any_election(world: &impl LockWorld) {
    let now = world.now().await;
    let past = json!({ "$date": now - 61_000 });
    world.plant(Some(json!({ "owner": "theirs", "lockedAt": past }))).await;
    assert!(is_taken(world, &attempt()).await);
}

async fn beats_are_shown_of_our_own_kind_only(world: &impl LockWorld) {
    for (document, beats) in [
        (json!({ "owner": "a", "leaseOwner": "a", "beats": 3 }), Some(3)),
        (json!({ "v": 2, "owner": "a", "leaseOwner": "a", "beats": 3 }), Some(3)),
        (json!({ "v": 3, "owner": "a", "leaseOwner": "a", "beats": 3 }), None),
        (json!({ "owner": "a", "leaseOwner": "b", "beats": 3 }), None),
        (json!({ "owner": "a", "beats": 3 }), None),
        (json!({ "beats": 3 }), None),
    ] {
        world.plant(Some(document.clone())).await;
        let shown = world.lock().inspect().await.expect("a reply").expect("a holder");
        assert_eq!(shown.beats, beats, "{document}");
    }
}

async fn a_renewal_moves_a_lease_to_the_election_of_now(world: &impl LockWorld) {
    plant_ours(world, 10_000, 4).await;
    let theirs = mongo_migrate_kit::lock::lease::OwnerToken::from_text("theirs");
    world.lock().renew(&theirs).await;
    let document = world.document().await.expect("the lease");
    if let Some(election) = world.election().await {
        assert_eq!(document["electionId"], election);
        world.age(Duration::from_secs(600)).await;
        assert!(is_taken(world, &attempt()).await);
    }
}

#[tokio::test]
async fn in_memory_an_election_during_a_takeover_is_reported() {
    let world = MemoryWorld::new();
    let lock = world.lock();
    assert!(is_taken(&world, &attempt()).await);
    world.age(timing().ttl() * 2).await;
    lock.elect_during_acquire();
    let successor = attempt();
    for _first_and_again in 0..2 {
        let reply = lock.acquire(&successor).await;
        assert!(matches!(reply, AcquireReply::Acquired { election_moved: true, .. }), "{reply:?}");
    }
}

#[tokio::test]
async fn in_memory_an_election_during_the_acquire_of_a_free_lock_does_not_matter() {
    let world = MemoryWorld::new();
    let lock = world.lock();
    lock.elect_during_acquire();
    let reply = lock.acquire(&attempt()).await;
    assert_eq!(reply, AcquireReply::Acquired { took_over_from: None, election_moved: false });
}

//! The lock's verbs: acquire, renew, release, inspect, force-release.

use std::time::Duration;

use mongo_migrate_kit::lock::lease::{Holder, OwnerToken};
use mongo_migrate_kit::lock::store::{AcquireReply, Attempt, LockStore, ReleaseReply, RenewReply};
use mongo_migrate_kit::migration::Namespace;
use serde_json::{Value, json};

use crate::worlds::{LockWorld, attempt, ms, timing};

on_every_store! {
    a_free_lock_is_taken_and_the_document_says_by_whom,
    the_default_namespace_is_an_absent_field,
    text_that_looks_like_an_expression_stays_text,
    of_sixteen_contenders_exactly_one_acquires,
    sixteen_contenders_for_a_live_lease_all_learn_who_holds_it,
    an_acquire_that_is_sent_again_recognises_its_own_lease,
    a_lease_that_is_over_is_taken_over_and_its_holder_remembered,
    a_renewal_prolongs_the_lease_and_counts,
    a_renewal_never_shortens_a_lease,
    a_renewal_after_a_takeover_finds_the_lease_gone,
    of_a_late_renewal_and_takeovers_that_meet_exactly_one_succeeds,
    a_release_deletes_only_ones_own_lease,
    a_released_lock_can_be_taken_again,
    nothing_is_inspected_where_nothing_is,
    a_forced_release_removes_only_the_holder_that_was_shown,
    a_forced_release_without_a_readable_owner_spares_a_readable_one,
}

const HOUR_MS: i64 = 3_600_000;

fn field_ms(document: &serde_json::Map<String, Value>, field: &str) -> i64 {
    document[field]["$date"].as_i64().expect("a date")
}

async fn acquire(world: &impl LockWorld) -> Attempt {
    let attempt = attempt();
    let reply = world.lock().acquire(&attempt).await;
    assert!(matches!(reply, AcquireReply::Acquired { .. }), "{reply:?}");
    attempt
}

fn held(reply: AcquireReply) -> Holder {
    match reply {
        AcquireReply::Held(holder) => holder,
        other => panic!("the lock is held, not {other:?}"),
    }
}

async fn a_free_lock_is_taken_and_the_document_says_by_whom(world: &impl LockWorld) {
    let mut attempt = attempt();
    attempt.identity.namespace = Namespace::new(Some("orders".to_owned()));
    let reply = world.lock().acquire(&attempt).await;
    assert_eq!(reply, AcquireReply::Acquired { took_over_from: None, election_moved: false });

    let document = world.document().await.expect("a lock document");
    for (field, value) in [
        ("v", json!(2)),
        ("changelog", json!("_mmk_migrations")),
        ("owner", json!(attempt.owner)),
        ("leaseOwner", json!(attempt.owner)),
        ("runId", json!(attempt.identity.run_id)),
        ("namespace", json!("orders")),
        ("host", json!("build-1")),
        ("pid", json!(41)),
        ("executedBy", json!("deploy")),
        ("operation", json!("up")),
        ("ttlMs", json!(60_000)),
        ("beats", json!(0)),
        ("appName", json!(attempt.identity.run_id.app_name())),
    ] {
        assert_eq!(document.get(field), Some(&value), "{field}");
    }
    let locked_at = field_ms(&document, "lockedAt");
    assert_eq!(field_ms(&document, "acquiredAt"), locked_at);
    assert_eq!(field_ms(&document, "expiresAt"), locked_at + 60_000);
    assert!(!document.contains_key("prev") && !document.contains_key("fence"));
    assert_eq!(document.get("electionId"), world.election().await.as_ref());
}

async fn the_default_namespace_is_an_absent_field(world: &impl LockWorld) {
    acquire(world).await;
    let document = world.document().await.expect("a lock document");
    assert!(!document.contains_key("namespace"));
}

async fn text_that_looks_like_an_expression_stays_text(world: &impl LockWorld) {
    let mut attempt = attempt();
    attempt.identity.host = "$$ROOT".to_owned();
    attempt.identity.user = "$owner".to_owned();
    attempt.identity.operation = "{\"$literal\": 1}".to_owned();
    world.lock().acquire(&attempt).await;
    let holder = world.lock().inspect().await.expect("a reply").expect("a holder");
    assert_eq!(holder.host.as_deref(), Some("$$ROOT"));
    assert_eq!(holder.user.as_deref(), Some("$owner"));
    assert_eq!(holder.operation.as_deref(), Some("{\"$literal\": 1}"));
}

async fn contend(world: &impl LockWorld) -> (Vec<AcquireReply>, usize) {
    let contenders: Vec<_> = (0..16)
        .map(|_| {
            let store = world.lock();
            tokio::spawn(async move { store.acquire(&attempt()).await })
        })
        .collect();
    let mut replies = Vec::new();
    for contender in contenders {
        replies.push(contender.await.expect("an acquire does not panic"));
    }
    let winners = replies.iter().filter(|reply| matches!(reply, AcquireReply::Acquired { .. }));
    let winners = winners.count();
    (replies, winners)
}

async fn of_sixteen_contenders_exactly_one_acquires(world: &impl LockWorld) {
    for round in 0..100 {
        let (now, election) = (world.now().await, world.election().await);
        // Missing, empty, expired, and left by 1.x, in turn.
        world
            .plant(match round % 4 {
                0 => None,
                2 => Some(json!({})),
                1 => Some(json!({
                    "owner": "a", "leaseOwner": "a", "lockedAt": { "$date": now - 61_000 },
                    "expiresAt": { "$date": now - 1_000 }, "electionId": election,
                })),
                _ => Some(json!({ "owner": "a", "lockedAt": { "$date": now - 61_000 } })),
            })
            .await;
        let (replies, winners) = contend(world).await;
        assert_eq!(winners, 1, "round {round}: {replies:?}");
    }
}

async fn sixteen_contenders_for_a_live_lease_all_learn_who_holds_it(world: &impl LockWorld) {
    let ours = acquire(world).await;
    let (replies, winners) = contend(world).await;
    assert_eq!(winners, 0);
    for reply in replies {
        let holder = held(reply);
        assert_eq!(holder.owner.as_deref(), Some(ours.owner.as_str()));
        assert!(!holder.expired);
        let left = holder.expires_at.expect("a readable lease") - holder.now;
        assert!((1..=60_000).contains(&left), "{left} ms left");
    }
}

async fn an_acquire_that_is_sent_again_recognises_its_own_lease(world: &impl LockWorld) {
    let predecessor = acquire(world).await;
    world.age(timing().ttl() * 2).await;
    let attempt = attempt();
    let first = world.lock().acquire(&attempt).await;
    let acquired_at = field_ms(&world.document().await.expect("a document"), "acquiredAt");

    world.age(Duration::from_secs(5)).await;
    let again = world.lock().acquire(&attempt).await;
    for reply in [first, again] {
        let AcquireReply::Acquired { took_over_from: Some(previous), election_moved: false } =
            reply
        else {
            panic!("the lease is ours, after somebody: {reply:?}")
        };
        assert_eq!(previous.owner.as_deref(), Some(predecessor.owner.as_str()));
    }
    let document = world.document().await.expect("a document");
    let moved = acquired_at - field_ms(&document, "acquiredAt");
    assert!(moved == 0 || moved == 5_000, "held since {moved} ms before");
    assert_eq!(document["beats"], json!(1));
}

async fn a_lease_that_is_over_is_taken_over_and_its_holder_remembered(world: &impl LockWorld) {
    let dead = acquire(world).await;
    world.age(timing().ttl() + Duration::from_millis(1)).await;
    let AcquireReply::Acquired { took_over_from: Some(previous), election_moved: false } =
        world.lock().acquire(&attempt()).await
    else {
        panic!("the lease was over")
    };
    assert_eq!(previous.owner.as_deref(), Some(dead.owner.as_str()));
    assert_eq!(previous.run_id.as_deref(), Some(dead.identity.run_id.as_str()));
    assert_eq!(previous.host.as_deref(), Some("build-1"));
    assert_eq!(previous.user.as_deref(), Some("deploy"));
    assert!(previous.expires_at.is_some_and(|end| end <= previous.now));
    assert!(previous.acquired_at.is_some() && previous.expired);
}

async fn a_renewal_prolongs_the_lease_and_counts(world: &impl LockWorld) {
    let ours = acquire(world).await;
    world.age(Duration::from_secs(30)).await;
    for beats in 1..=3 {
        assert_eq!(world.lock().renew(&ours.owner).await, RenewReply::Renewed { beats });
    }
    let holder = world.lock().inspect().await.expect("a reply").expect("a holder");
    let left = holder.expires_at.expect("a readable lease") - holder.now;
    assert!((55_000..=60_000).contains(&left), "{left} ms left");
    assert!(holder.acquired_at < holder.locked_at);
}

async fn a_renewal_never_shortens_a_lease(world: &impl LockWorld) {
    let ours = OwnerToken::random();
    let far = world.now().await + HOUR_MS;
    world
        .plant(Some(json!({
            "owner": ours, "leaseOwner": ours, "expiresAt": { "$date": far }, "beats": 7,
        })))
        .await;
    assert_eq!(world.lock().renew(&ours).await, RenewReply::Renewed { beats: 8 });
    let holder = world.lock().inspect().await.expect("a reply").expect("a holder");
    assert_eq!(holder.expires_at, Some(far));
}

async fn a_renewal_after_a_takeover_finds_the_lease_gone(world: &impl LockWorld) {
    let slow = acquire(world).await;
    world.age(timing().ttl() * 2).await;
    acquire(world).await;
    let before = world.document().await;
    assert_eq!(world.lock().renew(&slow.owner).await, RenewReply::Gone);
    assert_eq!(world.document().await, before);
}

async fn of_a_late_renewal_and_takeovers_that_meet_exactly_one_succeeds(world: &impl LockWorld) {
    for round in 0..25 {
        world.plant(None).await;
        let late = acquire(world).await;
        world.age(timing().ttl() * 2).await;
        let store = world.lock();
        let renewal = tokio::spawn(async move { store.renew(&late.owner).await });
        let (replies, winners) = contend(world).await;
        let renewed = renewal.await.expect("a renewal does not panic");
        let succeeded = winners + usize::from(matches!(renewed, RenewReply::Renewed { .. }));
        assert_eq!(succeeded, 1, "round {round}: {renewed:?}, {replies:?}");
    }
}

async fn a_release_deletes_only_ones_own_lease(world: &impl LockWorld) {
    let ours = acquire(world).await;
    let stranger = OwnerToken::random();
    assert_eq!(world.lock().release(&stranger, None).await, ReleaseReply::NotOurs);
    assert!(world.document().await.is_some());
    assert_eq!(world.lock().release(&ours.owner, None).await, ReleaseReply::Released);
    assert_eq!(world.document().await, None);
    assert_eq!(world.lock().release(&ours.owner, None).await, ReleaseReply::NotOurs);
}

async fn a_released_lock_can_be_taken_again(world: &impl LockWorld) {
    let first = acquire(world).await;
    world.lock().release(&first.owner, None).await;
    assert_eq!(world.lock().renew(&first.owner).await, RenewReply::Gone);
    acquire(world).await;
}

async fn nothing_is_inspected_where_nothing_is(world: &impl LockWorld) {
    assert_eq!(world.lock().inspect().await, Ok(None));
}

async fn a_forced_release_removes_only_the_holder_that_was_shown(world: &impl LockWorld) {
    let ours = acquire(world).await;
    let stranger = OwnerToken::random();
    assert_eq!(world.lock().force_release(Some(&stranger)).await, Ok(None));
    assert_eq!(world.lock().force_release(None).await, Ok(None));
    let removed = world.lock().force_release(Some(&ours.owner)).await.expect("a reply");
    let removed = removed.expect("the holder that was shown");
    assert_eq!(removed.owner.as_deref(), Some(ours.owner.as_str()));
    let length = removed.expires_at.zip(removed.locked_at).map(|(end, start)| end - start);
    assert_eq!(length, Some(ms(timing().ttl())));
    assert_eq!(world.lock().force_release(Some(&ours.owner)).await, Ok(None));
}

async fn a_forced_release_without_a_readable_owner_spares_a_readable_one(world: &impl LockWorld) {
    for owner in [json!(null), json!(7), json!(["a"]), json!({ "a": 1 })] {
        world.plant(Some(json!({ "owner": owner, "host": "odd" }))).await;
        let shown = world.lock().inspect().await.expect("a reply").expect("a holder");
        assert_eq!(shown.owner, None);
        let removed = world.lock().force_release(None).await.expect("a reply");
        assert_eq!(removed.and_then(|holder| holder.host).as_deref(), Some("odd"), "{owner}");
    }
}

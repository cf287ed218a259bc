//! The fence: who may raise it, and what it registers.

use std::time::Duration;

use mongo_migrate_kit::lock::lease::RunId;
use mongo_migrate_kit::lock::memory::Fate;
use mongo_migrate_kit::lock::store::{
    AcquireReply, ArmReply, Arming, Attempt, LockStore, ReleaseReply, UnsettledRun,
};
use mongo_migrate_kit::migration::Namespace;
use serde_json::json;

use crate::worlds::{LockWorld, MemoryWorld, attempt, timing};

on_every_store! {
    an_arm_raises_the_token_by_one_and_registers_the_run,
    an_arm_prolongs_the_lease_and_notes_its_token,
    an_arm_that_is_sent_again_registers_once,
    an_arm_takes_settled_runs_off_the_register,
    an_arm_after_a_takeover_finds_the_lease_gone,
    an_arm_without_a_lease_is_gone,
    tokens_rise_over_releases_and_forced_releases,
    a_release_takes_only_its_own_run_off_the_register,
    a_release_of_an_unsettled_run_leaves_it_registered,
    a_fence_command_counts_only_while_its_token_is_the_highest,
    a_register_is_read_as_it_was_written,
    nobody_is_unsettled_where_nothing_is,
    text_that_looks_like_an_expression_stays_text,
}

pub fn arming(attempt: &Attempt, settled: &[&Attempt]) -> Arming {
    let identity = &attempt.identity;
    Arming {
        run: UnsettledRun {
            run_id: identity.run_id.clone(),
            namespace: identity.namespace.clone(),
            changelog: identity.changelog.clone(),
            host: Some(identity.host.clone()),
            pid: Some(i64::from(identity.pid)),
        },
        settled: settled.iter().map(|attempt| attempt.identity.run_id.clone()).collect(),
    }
}

pub async fn acquired(world: &impl LockWorld) -> Attempt {
    let attempt = attempt();
    let reply = world.lock().acquire(&attempt).await;
    assert!(matches!(reply, AcquireReply::Acquired { .. }), "{reply:?}");
    attempt
}

pub async fn arm(world: &impl LockWorld, attempt: &Attempt) -> ArmReply {
    world.lock().arm(&attempt.owner, &arming(attempt, &[])).await
}

pub async fn armed(world: &impl LockWorld) -> (Attempt, i64) {
    let attempt = acquired(world).await;
    match arm(world, &attempt).await {
        ArmReply::Armed { token } => (attempt, token),
        other => panic!("not armed: {other:?}"),
    }
}

pub async fn register(world: &impl LockWorld) -> Vec<RunId> {
    let unsettled = world.lock().unsettled().await.expect("the register can be read");
    unsettled.into_iter().map(|run| run.run_id).collect()
}

/// As if the holder had died long ago.
pub async fn time_passes(world: &impl LockWorld) {
    world.age(timing().ttl() * 2).await;
}

async fn an_arm_raises_the_token_by_one_and_registers_the_run(world: &impl LockWorld) {
    let (first, token) = armed(world).await;
    assert_eq!((token, world.token().await), (1, 1));
    assert_eq!(register(world).await, std::slice::from_ref(&first.identity.run_id));

    time_passes(world).await;
    let (second, token) = armed(world).await;
    assert_eq!((token, world.token().await), (2, 2));
    assert_eq!(register(world).await, [first.identity.run_id, second.identity.run_id]);
}

async fn an_arm_prolongs_the_lease_and_notes_its_token(world: &impl LockWorld) {
    let ours = acquired(world).await;
    world.age(Duration::from_secs(30)).await;
    assert_eq!(arm(world, &ours).await, ArmReply::Armed { token: 1 });
    let holder = world.lock().inspect().await.expect("a reply").expect("a holder");
    let left = holder.expires_at.expect("a readable lease") - holder.now;
    assert!((55_000..=60_000).contains(&left), "{left} ms left");
    assert_eq!(holder.beats, Some(1));
    let document = world.document().await.expect("the lease");
    assert_eq!(document["fence"], json!(1));
    assert_eq!(document.get("electionId"), world.election().await.as_ref());
}

async fn an_arm_that_is_sent_again_registers_once(world: &impl LockWorld) {
    let (ours, _) = armed(world).await;
    assert_eq!(arm(world, &ours).await, ArmReply::Armed { token: 2 });
    assert_eq!(register(world).await, [ours.identity.run_id]);
}

async fn an_arm_takes_settled_runs_off_the_register(world: &impl LockWorld) {
    let (dead, _) = armed(world).await;
    time_passes(world).await;
    let (stubborn, _) = armed(world).await;
    time_passes(world).await;
    let ours = acquired(world).await;
    let reply = world.lock().arm(&ours.owner, &arming(&ours, &[&dead])).await;
    assert_eq!(reply, ArmReply::Armed { token: 3 });
    assert_eq!(register(world).await, [stubborn.identity.run_id, ours.identity.run_id]);
}

async fn an_arm_after_a_takeover_finds_the_lease_gone(world: &impl LockWorld) {
    let slow = acquired(world).await;
    time_passes(world).await;
    let (successor, token) = armed(world).await;
    let lease = world.document().await;
    assert_eq!(arm(world, &slow).await, ArmReply::Gone);
    assert_eq!(world.document().await, lease);
    // A standalone has no transactions, so there the token has risen before it was found out.
    if world.election().await.is_some() {
        assert_eq!(world.token().await, token);
        assert_eq!(register(world).await, [successor.identity.run_id]);
    } else {
        assert!(world.token().await >= token);
        assert!(register(world).await.contains(&successor.identity.run_id));
    }
}

async fn an_arm_without_a_lease_is_gone(world: &impl LockWorld) {
    assert_eq!(arm(world, &attempt()).await, ArmReply::Gone);
    assert_eq!(world.document().await, None);
}

async fn tokens_rise_over_releases_and_forced_releases(world: &impl LockWorld) {
    let (first, one) = armed(world).await;
    world.lock().release(&first.owner, Some(&first.identity.run_id)).await;
    let (second, two) = armed(world).await;
    world.lock().force_release(Some(&second.owner)).await.expect("a reply");
    let (_, three) = armed(world).await;
    assert_eq!((one, two, three), (1, 2, 3));
}

async fn a_release_takes_only_its_own_run_off_the_register(world: &impl LockWorld) {
    let (dead, _) = armed(world).await;
    time_passes(world).await;
    let (ours, _) = armed(world).await;
    let lock = world.lock();
    let reply = lock.release(&ours.owner, Some(&ours.identity.run_id)).await;
    assert_eq!(reply, ReleaseReply::Released);
    assert_eq!(register(world).await, [dead.identity.run_id]);
}

async fn a_release_of_an_unsettled_run_leaves_it_registered(world: &impl LockWorld) {
    let (ours, _) = armed(world).await;
    assert_eq!(world.lock().release(&ours.owner, None).await, ReleaseReply::Released);
    assert_eq!(register(world).await, [ours.identity.run_id]);
}

async fn a_fence_command_counts_only_while_its_token_is_the_highest(world: &impl LockWorld) {
    let (_, token) = armed(world).await;
    let command = world.lock().fence_command(token);
    assert_eq!((world.touch(&command).await, world.touch(&command).await), (1, 1));
    time_passes(world).await;
    let (_, newer) = armed(world).await;
    assert_eq!(world.touch(&command).await, 0);
    assert_eq!(world.touch(&world.lock().fence_command(newer)).await, 1);
}

async fn a_register_is_read_as_it_was_written(world: &impl LockWorld) {
    let mut ours = acquired(world).await;
    ours.identity.namespace = Namespace::new(Some("orders".to_owned()));
    ours.identity.changelog = "history".to_owned();
    let arming = arming(&ours, &[]);
    world.lock().arm(&ours.owner, &arming).await;
    assert_eq!(world.lock().unsettled().await, Ok(vec![arming.run.clone()]));

    let bare =
        UnsettledRun { host: None, pid: None, namespace: Namespace::default(), ..arming.run };
    let arming = Arming { run: bare.clone(), settled: vec![] };
    world.lock().arm(&ours.owner, &arming).await;
    assert_eq!(world.lock().unsettled().await, Ok(vec![bare]));
}

async fn nobody_is_unsettled_where_nothing_is(world: &impl LockWorld) {
    assert_eq!(world.lock().unsettled().await, Ok(vec![]));
}

async fn text_that_looks_like_an_expression_stays_text(world: &impl LockWorld) {
    let mut ours = attempt();
    ours.identity.run_id = RunId::from_text("$$ROOT");
    ours.identity.host = "$token".to_owned();
    ours.identity.changelog = "{\"$literal\": 1}".to_owned();
    world.lock().acquire(&ours).await;
    assert!(matches!(arm(world, &ours).await, ArmReply::Armed { .. }));
    assert_eq!(world.lock().unsettled().await, Ok(vec![arming(&ours, &[]).run]));
    world.lock().release(&ours.owner, Some(&ours.identity.run_id)).await;
    assert_eq!(register(world).await, []);
}

#[tokio::test]
async fn in_memory_an_arm_whose_reply_was_lost_has_raised_the_fence() {
    let world = MemoryWorld::new();
    let ours = acquired(&world).await;
    let lock = world.lock();
    lock.script().then([Fate::ReplyLost, Fate::RequestLost, Fate::Refused]);
    let arming = arming(&ours, &[]);
    assert!(matches!(lock.arm(&ours.owner, &arming).await, ArmReply::Unknown(_)));
    assert_eq!(world.token().await, 1);
    assert!(matches!(lock.arm(&ours.owner, &arming).await, ArmReply::Unknown(_)));
    assert!(matches!(lock.arm(&ours.owner, &arming).await, ArmReply::Refused(_)));
    assert_eq!(world.token().await, 1);
}

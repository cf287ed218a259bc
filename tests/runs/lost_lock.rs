//! A run that goes on after its lease is lost (`onLockLost: 'warn'`): what it may still record, what it
//! must leave to others, and when it ends all the same.

use std::sync::Arc;

use mongo_migrate_kit::changelog::entry::Status;
use mongo_migrate_kit::event::Event;
use mongo_migrate_kit::lock::lease::{LossCause, OnLockLost};
use mongo_migrate_kit::lock::memory_orphans::Nature;
use mongo_migrate_kit::lock::orphans::Orphans;
use mongo_migrate_kit::migration::Namespace;
use mongo_migrate_kit::plan::Policy;
use mongo_migrate_kit::runner::{Job, RunError};

use crate::world::{FILES, TTL, World, applied_by, job};

fn going_on() -> Job {
    Job { on_lock_lost: OnLockLost::Warn, ..job() }
}

fn transactional(job: Job) -> Job {
    Job { policy: Policy { use_transaction: true, ..job.policy }, ..job }
}

/// As an app with a history of its own in the same database.
fn of_another_app(mut job: Job) -> Job {
    job.identity.namespace = Namespace::new(Some("other".to_owned()));
    job
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_without_its_lease_records_what_nobody_has_moved_and_keeps_warning() {
    let world = World::new();
    let run = world.begin(going_on(), 0);
    run.in_a_body().await;
    world.lock.plant(None);
    tokio::time::sleep(TTL * 4).await;

    let lost = run.events().iter().filter(|e| matches!(e, Event::LeaseLost { .. })).count();
    assert_eq!(lost, 1);
    let warnings = run.warnings();
    assert!((5..=8).contains(&warnings), "{warnings} warnings in eight renewals");
    assert!(run.process.aborted.lock().expect("no poison").is_empty());
    let (id, process) = (run.id.clone(), Arc::clone(&run.process));
    run.go_on();
    let report = run.ended().await.expect("nobody was in the way");

    assert_eq!(report.results.len(), FILES.len());
    assert!(applied_by(&world.entries().await, &id));
    assert!(world.is_registered(&id), "the next run looks for what it may have left");
    let events = process.events.lock().expect("no poison").clone();
    let release = |e: &Event| matches!(e, Event::Warning { code: "LOCK_RELEASE_FAILED", .. });
    assert!(!events.iter().any(release), "the loss was said already");
}

#[tokio::test(start_paused = true)]
async fn what_is_running_for_a_run_that_goes_on_is_left_alone() {
    let world = World::new();
    let run = world.begin(going_on(), 0);
    run.in_a_body().await;
    world.orphans.plant(&run.id, "update orders", Nature::Obedient);
    world.unlock().await;

    assert_eq!(world.orphans.find(&run.id).await.expect("it can be asked").len(), 1);
    run.go_on();
    run.ended().await.expect("nobody was in the way");
}

#[tokio::test(start_paused = true)]
async fn what_another_run_has_moved_is_left_to_it_and_ends_the_run_that_goes_on() {
    let world = World::new();
    let run = world.begin(going_on(), 0);
    run.in_a_body().await;
    world.unlock().await;
    let other = world.begin(job(), FILES.len());
    let taken_over_by = other.id.clone();
    other.ended().await.expect("the lock was free");
    // Its successor, which must keep its lock.
    let third = world.begin(of_another_app(job()), 0);
    third.in_a_body().await;
    let held = world.owner();
    run.go_on();
    let stopped = run.ended().await.expect_err("its entry is another's");

    let lost = RunError::Lost {
        cause: LossCause::Superseded,
        during: Some("0.js".to_owned()),
        settled: true,
    };
    assert_eq!(stopped.error, lost);
    assert_eq!(stopped.not_started, ["1.js"]);
    assert!(applied_by(&world.entries().await, &taken_over_by));
    assert!(held.is_some());
    assert_eq!(world.owner(), held);
    third.go_on();
    third.ended().await.expect("it was left in peace");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_commits_without_the_lease_as_long_as_no_other_run_has_begun() {
    let world = World::new();
    let run = world.begin(transactional(going_on()), 0);
    run.in_a_body().await;
    world.unlock().await;
    let id = run.id.clone();
    run.go_on();
    run.ended().await.expect("nobody was in the way");

    assert!(applied_by(&world.entries().await, &id));
}

#[tokio::test(start_paused = true)]
async fn a_transaction_of_a_run_that_goes_on_never_commits_once_another_run_has_begun() {
    let world = World::new();
    let run = world.begin(transactional(going_on()), 0);
    run.in_a_body().await;
    world.unlock().await;
    let other = world.begin(of_another_app(job()), FILES.len());
    other.ended().await.expect("the lock was free");
    run.go_on();
    let stopped = run.ended().await.expect_err("it is fenced");

    let RunError::Lost { cause: LossCause::Fenced, .. } = stopped.error else {
        panic!("{:?}", stopped.error);
    };
    let entries = world.entries().await;
    let statuses: Vec<_> = entries.iter().map(|entry| entry.status.clone()).collect();
    assert_eq!(statuses, [Status::Running]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_before_the_first_body_stops_the_run_either_way() {
    let world = World::new();
    let first = world.begin(going_on(), 0);
    first.in_a_body().await;
    world.lock.plant(None);
    // What the first run left can't be looked for, so the second waits for a TTL before it begins.
    world.orphans.forbid();
    let second = world.begin(of_another_app(going_on()), FILES.len());
    tokio::time::sleep(TTL / 2).await;
    assert!(world.owner().is_some(), "it holds the lock and has not begun");
    world.lock.plant(None);
    let process = Arc::clone(&second.process);
    let stopped = second.ended().await.expect_err("it never had a fence");

    let nothing_ran = RunError::Lost { cause: LossCause::Superseded, during: None, settled: true };
    assert_eq!(stopped.error, nothing_ran);
    assert_eq!(process.begun.available_permits(), 0);
    first.go_on();
    first.ended().await.expect("nobody has moved anything");
}

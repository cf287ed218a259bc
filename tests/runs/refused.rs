//! A server that refuses to record what a body came to: the error names the migration and says that
//! its body has run.

use mongo_migrate_kit::changelog::entry::Status;
use mongo_migrate_kit::error::{Certainty, Failed};
use mongo_migrate_kit::host::Between;
use mongo_migrate_kit::lock::memory::Fate;
use mongo_migrate_kit::runner::Job;

use crate::world::{FILES, World, job};

/// A right is missing when the first body is to be recorded.
async fn first_of(job: Job) -> (World, Failed) {
    let world = World::new();
    let run = world.begin(job, 0);
    run.in_a_body().await;
    run.fates.then([Fate::Refused]);
    run.go_on();
    let stopped = run.ended().await.expect_err("its record is refused");
    (world, stopped.into())
}

async fn names_the_migration_and_its_state(job: Job) {
    let (world, failed) = first_of(job).await;
    let (error, [file, next]) = (failed.error, FILES);

    assert_eq!((error.code.as_str(), error.certainty), ("CONNECTION_FAILED", Certainty::Known));
    let says = format!("\"{file}\" has run and its entry still says running: recording it was ");
    assert!(error.message.starts_with(&says), "{}", error.message);
    assert_eq!(error.context["name"], file);
    assert_eq!(error.context["bodyRan"], true);
    assert_eq!(error.context["notStarted"], serde_json::json!([next]));
    assert!(error.hint.is_some_and(|hint| hint.contains("mmk mark <file> --applied|--pending")));
    let found: Vec<_> = world.entries().await.into_iter().map(|e| (e.name, e.status)).collect();
    assert_eq!(found, [(file.to_owned(), Status::Running)]);
    assert_eq!(world.owner(), None, "the lock is released");
}

#[tokio::test(start_paused = true)]
async fn a_refused_record_names_its_migration_and_says_that_it_has_run() {
    names_the_migration_and_its_state(Job { between: Between::Hooks, ..job() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_refused_together_with_the_next_claim_says_the_same() {
    names_the_migration_and_its_state(Job { between: Between::Nothing, ..job() }).await;
}

//! What runs on simulated processes have in common.

use std::time::Duration;

use mongo_migrate_kit::host::{Between, Exports, ModuleFacts};
use mongo_migrate_kit::lock::lease::{Identity, OnLockLost, RunId};
use mongo_migrate_kit::lock::timing::Timing;
use mongo_migrate_kit::lock::wait::WaitPolicy;
use mongo_migrate_kit::migration::{MigrationFile, MigrationName, Namespace};
use mongo_migrate_kit::plan::{Policy, Request, Scope};
use mongo_migrate_kit::runner::Job;

/// A run of `up` over these files that asks for the lock once, and has no hooks.
pub fn up(files: Vec<MigrationFile>, ttl: Duration) -> Job {
    Job {
        request: Request::Up { scope: Scope::All, step: false, force: false },
        policy: Policy::default(),
        files,
        identity: Identity {
            run_id: RunId::random(),
            namespace: Namespace::default(),
            changelog: "_mmk_migrations".into(),
            host: "simulated".into(),
            pid: 1,
            user: "nobody".into(),
            operation: "up".into(),
        },
        timing: Timing::new(ttl).expect("a valid TTL"),
        lock: Some(WaitPolicy::Fail),
        on_lock_lost: OnLockLost::Stop,
        between: Between::Nothing,
        environment: "test".into(),
        service: None,
    }
}

/// Every file can be used, and reverted.
pub fn loaded(names: Vec<MigrationName>) -> Vec<ModuleFacts> {
    let exports =
        Exports { down: true, use_transaction: None, description: None, on_interrupted: None };
    let facts = |name| ModuleFacts { name, exports: Ok(exports.clone()) };
    names.into_iter().map(facts).collect()
}

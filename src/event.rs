//! What happens during a run, as it happens. The public `onEvent` shows these as they are.

use serde::Serialize;
use serde_json::Value;

use crate::lock::lease::{Holder, LossCause};
use crate::migration::Direction;

/// One event. Serialises to the shapes of `lib/contract.d.ts`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// Somebody else holds the lock, and we wait.
    LockWaiting {
        /// Who.
        holder: Holder,
        /// When we look again.
        retry_in_ms: u64,
    },
    /// The lock is ours.
    LockAcquired {
        /// Our owner token.
        owner: String,
        /// Our run.
        run_id: String,
        /// The run whose expired lease was taken over.
        took_over_from: Option<String>,
    },
    /// The fence stands: bodies may run.
    LockArmed {
        /// Our fencing token.
        fencing_token: i64,
    },
    /// What earlier runs left running on the server is being stopped.
    OrphansFound {
        /// The run that left it.
        run_id: String,
        /// What it is: `update orders`.
        operations: Vec<String>,
    },
    /// The lease was prolonged.
    LeaseRenewed {
        /// How often so far.
        beats: i64,
    },
    /// A renewal brought no answer; another follows.
    RenewalFailed {
        /// The server's or the driver's words.
        message: String,
    },
    /// The lease is lost; nothing more is recorded.
    LeaseLost {
        /// Why.
        cause: LossCause,
    },
    /// The lock was given back.
    LockReleased,
    /// Everything is checked and decided, and the first body is about to run.
    Planned {
        /// What will run.
        direction: Direction,
        /// In which order.
        names: Vec<String>,
    },
    /// A body begins.
    MigrationStarted {
        /// The migration.
        name: String,
        /// What runs.
        direction: Direction,
        /// Its place in the plan, from 1.
        position: usize,
        /// How many the plan has.
        total: usize,
        /// It ran before and did not finish.
        rerun_of: Option<Unfinished>,
        /// It runs although it is applied.
        forced: bool,
    },
    /// A body is done and recorded.
    MigrationFinished {
        /// The migration.
        name: String,
        /// What its entry says now.
        status: Finished,
        /// How long the body took.
        duration_ms: i64,
        /// The batch, when it was applied.
        batch: Option<i64>,
        /// Did it run in a transaction?
        transaction: bool,
        /// How often its body ran.
        attempts: u32,
    },
    /// An entry was changed by hand.
    MigrationMarked {
        /// The migration.
        name: String,
        /// What its entry says now.
        status: Finished,
        /// Why.
        reason: Option<String>,
    },
    /// A migration was left out.
    MigrationSkipped {
        /// The migration.
        name: String,
        /// Why.
        reason: String,
    },
    /// A body threw, or its record could not be written.
    MigrationFailed {
        /// The migration.
        name: String,
        /// What ran.
        direction: Direction,
        /// What the body threw.
        error: Option<Value>,
    },
    /// An entry was not as it was read: somebody else moved it first.
    ClaimConflict {
        /// The migration.
        name: String,
        /// What had been read.
        expected: EntryFacts,
        /// What is there now.
        found: Option<EntryFacts>,
    },
    /// Something that the user should know and that stops nothing.
    Warning {
        /// Stable name of the kind.
        code: &'static str,
        /// One sentence.
        message: String,
        /// Its facts.
        context: Value,
    },
}

/// How an earlier run of the same migration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unfinished {
    /// Its run disappeared in the middle.
    Interrupted,
    /// It threw.
    Failed,
}

/// What a finished migration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Finished {
    /// Its `up` is done.
    Applied,
    /// Its `down` is done.
    Reverted,
}

/// As much of an entry as explains a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryFacts {
    /// Its status; `none` when there was no entry.
    pub status: String,
    /// Its version.
    pub version: Option<i64>,
    /// The run that changed it last.
    pub run_id: Option<String>,
}

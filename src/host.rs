//! The port to whoever runs migration bodies: Node, or a simulation.
//!
//! Values that users' code throws stay with the host; what crosses is a description and a number
//! under which the host finds the very value again.

use std::future::Future;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Event;
use crate::lock::lease::LossCause;
use crate::migration::{Direction, MigrationName};

/// Runs bodies and hooks, and hears what happens.
///
/// # Assumptions
/// Calls come one after another, except [`Host::abort`] and [`Host::emit`], which may come at any
/// time and return at once.
pub trait Host: Send + Sync + 'static {
    /// Loads files and checks what they export, running nothing.
    fn load(
        &self,
        names: Vec<MigrationName>,
    ) -> impl Future<Output = Result<Vec<ModuleFacts>, HostGone>> + Send;

    /// Connects the driver that bodies use.
    fn connect(
        &self,
        app_name: String,
    ) -> impl Future<Output = Result<Acknowledged, HostGone>> + Send;

    /// Runs one body to its end.
    fn run(&self, call: BodyCall) -> impl Future<Output = Result<BodyReply, HostGone>> + Send;

    /// Runs one hook, if there is one.
    fn hook(&self, call: HookCall) -> impl Future<Output = Result<Acknowledged, HostGone>> + Send;

    /// Tells the running body to stop and closes the client that it was given.
    fn abort(&self, reason: StopReason);

    /// Passes an event on.
    fn emit(&self, event: &Event);
}

/// The host can't be reached any more (its environment is being torn down), or broke its contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host of the migrations did not answer: {0}")]
pub struct HostGone(pub String);

/// How much a run is still wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// It is.
    #[default]
    Yes,
    /// It shall end: the running body is told so and given time.
    Cancelled,
    /// The host is on its way out: there is nobody left to wait for.
    Abandoned,
}

/// What the host has to do between the end of one migration and the beginning of the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Between {
    /// There may be hooks, any of which may stop the run.
    #[default]
    Hooks,
    /// There are none.
    Nothing,
}

/// Why a body is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The lease is lost.
    LeaseLost(LossCause),
    /// The user wants the run to end.
    Cancelled,
}

/// A description of something that the host's side threw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostError {
    /// A public error code, or `None` for what a user's own code threw.
    pub code: Option<String>,
    /// `error.name`, or the kind of value.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Its facts.
    #[serde(default)]
    pub context: Value,
    /// Where the host keeps the value itself.
    pub cause_id: u32,
}

/// Done, or what was thrown.
pub type Acknowledged = Result<(), HostError>;

/// What a migration file exports.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleFacts {
    /// The file.
    pub name: MigrationName,
    /// Its exports, or why it can't be used.
    pub exports: Result<Exports, HostError>,
}

/// The exports that matter to the plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exports {
    /// Is there a `down`?
    pub down: bool,
    /// The file's own wish; `None` leaves it to the configuration.
    pub use_transaction: Option<bool>,
    /// Its description.
    pub description: Option<String>,
    /// What to do after it was interrupted or failed; `None` leaves it to the configuration.
    pub on_interrupted: Option<OnInterrupted>,
}

/// What to do with a migration that did not finish last time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnInterrupted {
    /// Run it again, and say so.
    #[default]
    Retry,
    /// Refuse until somebody has looked.
    Stop,
}

/// A body to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyCall {
    /// The migration.
    pub name: MigrationName,
    /// Which export.
    pub direction: Direction,
    /// The run, as `ctx` shows it.
    pub run_id: String,
    /// The number that rises with every grant of the lock; `None` without a lock.
    pub fencing_token: Option<i64>,
    /// Run in a transaction whose last statements before the commit are this command and the fence.
    pub settle: Option<Vec<u8>>,
    /// The command that makes a transaction fail if a later run has begun; `None` without a lock.
    pub fence: Option<Vec<u8>>,
}

/// How a body ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum BodyReply {
    /// It returned; in a transaction, it is committed.
    Done {
        /// How long the body took; of several attempts, the last.
        duration_ms: i64,
        /// How often it ran: a transaction that the server gave up is tried again.
        attempts: u32,
    },
    /// It threw; in a transaction, it is rolled back.
    Threw {
        /// How long the body took.
        duration_ms: i64,
        /// What it threw.
        error: HostError,
    },
    /// The settle command matched nothing, so the transaction is rolled back.
    Conflict {
        /// How long the body took.
        duration_ms: i64,
    },
    /// The fence command matched nothing, so the transaction is rolled back.
    Fenced {
        /// How long the body took.
        duration_ms: i64,
    },
    /// Whether the transaction was committed could not be learned.
    Unknown {
        /// How long the body took.
        duration_ms: i64,
        /// What the commit said.
        error: HostError,
    },
}

/// A hook to run. Serialises to the shapes of `lib/contract.d.ts`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "hook", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HookCall {
    /// Before the first migration of a run.
    BeforeAll,
    /// Before each migration.
    BeforeEach {
        /// The migration.
        name: String,
    },
    /// After each migration that is done and recorded.
    AfterEach {
        /// The migration.
        name: String,
        /// How long its body took.
        duration_ms: i64,
    },
    /// After the last migration, when none failed.
    AfterAll,
    /// After a migration failed.
    OnError {
        /// The migration.
        name: String,
        /// Where the host keeps what it threw.
        cause_id: u32,
    },
}

//! Every error of the core with its public face: code, certainty, hint, and the facts around it.
//!
//! Modules name their own errors; only here do they get the codes that users match on. A
//! [`Failure`] is what crosses the binding: `lib/errors.js` makes the real error of it.

mod files;
mod import;
mod problem;

use serde::Serialize;
use serde_json::{Value, json};

use crate::config::InvalidSettings;
use crate::fault::{FaultKind, StoreFault};
use crate::host::StopReason;
use crate::plan::Problem;
use crate::runner::{RunError, RunResult, Stopped};

/// Is it known what happened in the database?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// What the error says is all there is to know.
    Known,
    /// A write may or may not have happened.
    Unknown,
}

/// An error as data. Serialises to the shape of `lib/contract.d.ts`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The public code.
    pub code: String,
    /// One sentence, without secrets.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Is it known what happened?
    pub certainty: Certainty,
    /// The facts.
    pub context: Value,
    /// Where the host keeps the value that was thrown.
    pub cause_id: Option<u32>,
    /// What went wrong after it.
    pub suppressed: Vec<Failure>,
}

/// A failure, and what had been done when it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// The failure.
    pub error: Failure,
    /// What had been done.
    pub results: Vec<RunResult>,
}

impl From<Stopped> for Failed {
    fn from(stopped: Stopped) -> Self {
        let mut error = Failure::from(&stopped.error);
        error.suppressed = stopped.suppressed.iter().map(Failure::from).collect();
        if let Value::Object(facts) = &mut error.context {
            let done: Vec<&str> = stopped.results.iter().map(|done| done.file.as_str()).collect();
            facts.insert("done".into(), json!(done));
            facts.insert("notStarted".into(), json!(stopped.not_started));
            facts.extend(stopped.metrics.map(|metrics| ("metrics".to_owned(), json!(metrics))));
        }
        Self { error, results: stopped.results }
    }
}

impl<E> From<E> for Failed
where
    Failure: From<E>,
{
    fn from(error: E) -> Self {
        Self { error: error.into(), results: Vec::new() }
    }
}

impl RunError {
    /// The public code.
    pub fn code(&self) -> &str {
        match self {
            Self::Impossible(problems) => problems.first().map_or("INTERNAL", Problem::code),
            Self::LockHeld { .. } => "LOCK_ALREADY_HELD",
            Self::Database { fault, .. } | Self::NotRecorded { fault, .. } => fault.code(),
            Self::HostConnection(error) => error.code.as_deref().unwrap_or("CONNECTION_FAILED"),
            Self::Migration { error, .. } => {
                error.code.as_deref().unwrap_or("MIGRATION_EXECUTION_FAILED")
            }
            Self::Hook { .. } => "HOOK_FAILED",
            Self::Lost { .. } => "LOCK_LOST",
            Self::Cancelled { .. } => "RUN_CANCELLED",
            Self::Orphans { .. } => "LOCK_ORPHANS",
            Self::Conflict { .. } => "CHANGELOG_CONFLICT",
            Self::OutcomeUnknown { .. } => "OUTCOME_UNKNOWN",
            Self::Host(_) => "INTERNAL",
        }
    }

    /// Is it known what happened in the database?
    pub fn certainty(&self) -> Certainty {
        match self {
            Self::OutcomeUnknown { .. }
            | Self::Host(_)
            | Self::Lost { during: Some(_), .. }
            | Self::Cancelled { settled: false, .. } => Certainty::Unknown,
            Self::Impossible(_)
            | Self::LockHeld { .. }
            | Self::Database { .. }
            | Self::HostConnection(_)
            | Self::Migration { .. }
            | Self::Hook { .. }
            | Self::Lost { during: None, .. }
            | Self::Cancelled { settled: true, .. }
            | Self::Orphans { .. }
            | Self::Conflict { .. }
            | Self::NotRecorded { .. } => Certainty::Known,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Impossible(problems) => problems.first().and_then(Problem::hint),
            Self::Migration { transaction: true, .. } => {
                Some("the transaction was rolled back; fix the migration and run again")
            }
            Self::Migration { transaction: false, .. } => {
                Some("what it wrote before it failed is still there; fix it and run again")
            }
            Self::Lost { .. } => Some(
                "look at `mmk status` for what is recorded, then run again: \
                 an unfinished migration runs once more",
            ),
            Self::Cancelled { .. } => {
                Some("look at `mmk status`; run again to go on where this run stopped")
            }
            Self::Orphans { .. } => Some(
                "find them with db.currentOp(), stop them or wait for their end, then run again",
            ),
            Self::Conflict { .. } => {
                Some("the entry is left as it was found; look at `mmk status` before running again")
            }
            Self::NotRecorded { .. } => Some(
                "the next run takes it for interrupted and begins it again; where it must not, \
                 `mmk mark <file> --applied|--pending` says how it stands",
            ),
            Self::OutcomeUnknown { .. } => {
                Some("look at `mmk status` when the database can be reached again")
            }
            Self::Database { fault, .. } => fault.hint(),
            Self::LockHeld { .. } | Self::HostConnection(_) | Self::Hook { .. } | Self::Host(_) => {
                None
            }
        }
    }

    fn context(&self) -> Value {
        match self {
            Self::Impossible(problems) => problem::context(problems),
            Self::LockHeld { holder, waited_ms } => {
                json!({ "holder": holder, "waitedMs": waited_ms })
            }
            Self::Database { doing, fault } => json!({ "doing": doing, "cause": fault }),
            Self::HostConnection(error) => error.context.clone(),
            Self::Migration { name, direction, error, transaction } => json!({
                "name": name, "direction": direction, "transaction": transaction,
                "cause": error.message, "thrown": error.name, "details": error.context,
            }),
            Self::Hook { hook, name, error } => {
                json!({ "hook": hook, "name": name, "cause": error.message })
            }
            Self::Lost { cause, during, settled } => {
                json!({ "cause": cause, "during": during, "settled": settled })
            }
            Self::Cancelled { during, settled } => {
                json!({ "during": during, "settled": settled })
            }
            Self::Orphans { run_id, operations } => {
                json!({ "runId": run_id, "operations": operations })
            }
            Self::Conflict { name, expected, found, body_ran } => {
                json!({ "name": name, "expected": expected, "found": found, "bodyRan": body_ran })
            }
            Self::NotRecorded { name, fault } => json!({
                "doing": "recording a migration", "cause": fault, "name": name, "bodyRan": true,
            }),
            Self::OutcomeUnknown { name, reason, body_ran, .. } => {
                json!({ "name": name, "cause": reason, "bodyRan": body_ran })
            }
            Self::Host(gone) => json!({ "cause": gone.0 }),
        }
    }

    fn cause_id(&self) -> Option<u32> {
        match self {
            Self::Migration { error, .. }
            | Self::Hook { error, .. }
            | Self::HostConnection(error) => Some(error.cause_id),
            Self::OutcomeUnknown { cause_id, .. } => *cause_id,
            Self::Impossible(problems) => problems.iter().find_map(|problem| match problem {
                Problem::Unusable { error, .. } => Some(error.cause_id),
                _ => None,
            }),
            Self::LockHeld { .. }
            | Self::Database { .. }
            | Self::Lost { .. }
            | Self::Cancelled { .. }
            | Self::Orphans { .. }
            | Self::Conflict { .. }
            | Self::NotRecorded { .. }
            | Self::Host(_) => None,
        }
    }
}

impl From<&RunError> for Failure {
    fn from(error: &RunError) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
            certainty: error.certainty(),
            context: error.context(),
            cause_id: error.cause_id(),
            suppressed: Vec::new(),
        }
    }
}

impl StoreFault {
    /// The public code of a fault that stops a command.
    pub fn code(&self) -> &'static str {
        match self.kind {
            FaultKind::Unusable => "CONFIG_INVALID",
            FaultKind::Unreachable | FaultKind::Unauthorized => "CONNECTION_FAILED",
            FaultKind::Incapable | FaultKind::Rejected => "DATABASE_ERROR",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            FaultKind::Unusable => Some("change the connection string (uri, MMK_URI, --uri)"),
            FaultKind::Unreachable => Some("check the host and port, and that the server is up"),
            FaultKind::Unauthorized => Some("check the user, the password and the user's roles"),
            FaultKind::Incapable => Some(
                "this server takes neither update pipelines nor the plain operators that are used \
                 instead: use MongoDB 4.4 or later",
            ),
            FaultKind::Rejected => None,
        }
    }
}

impl From<StoreFault> for Failure {
    fn from(fault: StoreFault) -> Self {
        Self {
            code: fault.code().to_owned(),
            message: fault.message.clone(),
            hint: fault.hint().map(str::to_owned),
            certainty: Certainty::Known,
            context: json!({ "cause": fault }),
            cause_id: None,
            suppressed: Vec::new(),
        }
    }
}

impl From<InvalidSettings> for Failure {
    fn from(error: InvalidSettings) -> Self {
        let (code, context) = match &error {
            InvalidSettings::Name(invalid) => {
                ("MIGRATION_INVALID_NAME", json!({ "name": invalid.0 }))
            }
            InvalidSettings::Ttl(_) => ("CONFIG_INVALID", json!({ "key": "lockTTLSeconds" })),
            InvalidSettings::Shape(_) => ("INTERNAL", json!({})),
            InvalidSettings::Argument { facts, .. } => ("INVALID_ARGUMENT", facts.clone()),
        };
        Self {
            code: code.into(),
            message: error.to_string(),
            hint: None,
            certainty: Certainty::Known,
            context,
            cause_id: None,
            suppressed: Vec::new(),
        }
    }
}

impl From<StopReason> for Failure {
    fn from(reason: StopReason) -> Self {
        let (during, settled) = (None, false);
        match reason {
            StopReason::LeaseLost(cause) => Self::from(&RunError::Lost { cause, during, settled }),
            StopReason::Cancelled => Self::from(&RunError::Cancelled { during, settled }),
        }
    }
}

//! What a run came to, and why it stopped.

use serde::Serialize;

use crate::changelog::entry::Status;
use crate::changelog::store::{ClaimedEntry, Expected};
use crate::event::{EntryFacts, Finished};
use crate::fault::StoreFault;
use crate::host::{HostError, HostGone};
use crate::lock::lease::Holder;
use crate::lock::lease::LossCause;
use crate::metrics::Metrics;
use crate::migration::Direction;
use crate::plan::Problem;

/// A run that did all it had to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was done, in order.
    pub results: Vec<RunResult>,
    /// Nothing had to be done.
    pub up_to_date: bool,
    /// Did it wait for the lock?
    pub waited: bool,
    /// How long.
    pub waited_ms: u64,
    /// Its numbers.
    pub metrics: Metrics,
}

/// What one migration came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// File name.
    pub file: String,
    /// What was done.
    pub status: ResultStatus,
    /// How long the body took.
    pub duration_ms: Option<i64>,
    /// The batch, when it was applied.
    pub batch: Option<i64>,
    /// Why it was skipped.
    pub reason: Option<String>,
    /// Did it run in a transaction?
    pub transaction: bool,
    /// How often its body ran.
    pub attempts: u32,
}

/// What was done with a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResultStatus {
    /// Its `up` ran.
    Applied,
    /// Its `down` ran.
    Reverted,
    /// Nothing.
    Skipped,
}

impl From<Finished> for ResultStatus {
    fn from(finished: Finished) -> Self {
        match finished {
            Finished::Applied => Self::Applied,
            Finished::Reverted => Self::Reverted,
        }
    }
}

/// A run that stopped before its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    /// The first thing that went wrong.
    pub error: RunError,
    /// What went wrong after it, and because of it.
    pub suppressed: Vec<RunError>,
    /// What had been done by then.
    pub results: Vec<RunResult>,
    /// What did not begin.
    pub not_started: Vec<String>,
    /// Its numbers; nothing where no run was wanted.
    pub metrics: Option<Metrics>,
}

impl From<RunError> for Stopped {
    fn from(error: RunError) -> Self {
        let (suppressed, results, not_started) = (vec![], vec![], vec![]);
        Self { error, suppressed, results, not_started, metrics: None }
    }
}

/// Why a run stops. `error` gives each its public code, certainty and hint.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The plan is impossible. Nothing ran, unless another namespace took a name in the meantime, or
    /// a redo is between its halves: then what ran before is among the results.
    #[error("{}", problem_list(.0))]
    Impossible(Vec<Problem>),
    /// Somebody else holds the lock. Nothing ran.
    #[error("The migration lock is held")]
    LockHeld {
        /// Who.
        holder: Box<Holder>,
        /// How long we waited for it; 0 if we did not.
        waited_ms: u64,
    },
    /// The database refused or could not be asked, before anything ran or between two migrations.
    #[error("{doing}: {fault}")]
    Database {
        /// What we were doing.
        doing: &'static str,
        /// What it said.
        fault: StoreFault,
    },
    /// The host's own connection failed. Nothing ran.
    #[error("{}", .0.message)]
    HostConnection(HostError),
    /// A body threw.
    #[error("Migration \"{}\" failed in {}()", name.escape_debug(), direction.as_str())]
    Migration {
        /// The migration.
        name: String,
        /// What ran.
        direction: Direction,
        /// What it threw.
        error: HostError,
        /// Was it in a transaction, and so rolled back?
        transaction: bool,
    },
    /// A hook threw. Everything in the results is done and recorded.
    #[error("The hook {hook} failed")]
    Hook {
        /// Which.
        hook: &'static str,
        /// For which migration.
        name: Option<String>,
        /// What it threw.
        error: HostError,
    },
    /// The lease ended while we were at work. Nothing was recorded after that, or, in a run that goes
    /// on, this could not be.
    #[error("The migration lock was lost mid-run ({}){}", loss(*cause), left(during.as_deref(), *settled))]
    Lost {
        /// Why.
        cause: LossCause,
        /// What was running.
        during: Option<String>,
        /// Had its body ended when the run stopped?
        settled: bool,
    },
    /// The user wanted the run to end. What was done is recorded.
    #[error("The run was cancelled{}", left(during.as_deref(), *settled))]
    Cancelled {
        /// What was running.
        during: Option<String>,
        /// Had its body ended when the run stopped?
        settled: bool,
    },
    /// Operations of an earlier run go on, although they were told to stop. Nothing ran.
    #[error("Operations of an earlier run are still running on the server: {}", operations.join(", "))]
    Orphans {
        /// The run that left them.
        run_id: String,
        /// What they are.
        operations: Vec<String>,
    },
    /// An entry was not as it was read; it is left as it was found.
    #[error("The changelog entry of \"{}\" was changed by somebody else", name.escape_debug())]
    Conflict {
        /// The migration.
        name: String,
        /// What had been read.
        expected: EntryFacts,
        /// What is there now.
        found: Option<EntryFacts>,
        /// Had its body run?
        body_ran: bool,
    },
    /// The server refused to record what a body came to: it has run, and its entry says `running`.
    #[error(
        "\"{}\" has run and its entry still says running: recording it was refused: {fault}",
        name.escape_debug()
    )]
    NotRecorded {
        /// The migration.
        name: String,
        /// What the database said.
        fault: StoreFault,
    },
    /// A write may or may not have happened.
    #[error("It is unknown whether \"{}\" was recorded: {reason}", name.escape_debug())]
    OutcomeUnknown {
        /// The migration.
        name: String,
        /// What the database or the driver said.
        reason: String,
        /// Where the host keeps what the driver threw.
        cause_id: Option<u32>,
        /// Had its body run?
        body_ran: bool,
    },
    /// The host is gone or broke its contract.
    #[error(transparent)]
    Host(#[from] HostGone),
}

impl RunError {
    /// A write of ours that nobody could be asked about.
    pub(crate) fn unknown(name: &str, fault: StoreFault, body_ran: bool) -> Self {
        let (name, reason) = (name.to_owned(), fault.message);
        Self::OutcomeUnknown { name, reason, cause_id: None, body_ran }
    }

    pub(super) fn not_recorded(name: &str, fault: StoreFault) -> Self {
        Self::NotRecorded { name: name.to_owned(), fault }
    }

    /// Has every body of the run ended?
    pub fn settled(&self) -> bool {
        match self {
            Self::Lost { settled, .. } | Self::Cancelled { settled, .. } => *settled,
            Self::Host(_) => false,
            Self::Impossible(_)
            | Self::LockHeld { .. }
            | Self::Database { .. }
            | Self::HostConnection(_)
            | Self::Migration { .. }
            | Self::Hook { .. }
            | Self::Orphans { .. }
            | Self::Conflict { .. }
            | Self::NotRecorded { .. }
            | Self::OutcomeUnknown { .. } => true,
        }
    }
}

fn problem_list(problems: &[Problem]) -> String {
    match problems {
        [only] => only.to_string(),
        many => {
            let lines: String = many.iter().map(|problem| format!("\n  - {problem}")).collect();
            format!("{} problems, nothing ran:{lines}", many.len())
        }
    }
}

fn left(during: Option<&str>, settled: bool) -> String {
    match during.map(str::escape_debug) {
        None => String::new(),
        Some(name) if settled => format!(" while \"{name}\" was running"),
        Some(name) => {
            format!(" while \"{name}\" was running, and it did not end when told to")
        }
    }
}

fn loss(cause: LossCause) -> &'static str {
    match cause {
        LossCause::Superseded => "a renewal found that it is not ours any more",
        LossCause::Deadline => "no renewal was acknowledged in time",
        LossCause::Fenced => "a later run has begun",
    }
}

impl EntryFacts {
    /// The facts of a precondition.
    pub(super) fn expected(expected: &Expected, run_id: Option<&str>) -> Self {
        let run_id = run_id.map(str::to_owned);
        match expected {
            Expected::Absent => Self { status: "none".into(), version: None, run_id },
            Expected::Present { status, version, .. } => {
                Self { status: status.as_str().to_owned(), version: *version, run_id }
            }
        }
    }

    /// The facts of an entry that was claimed.
    pub(super) fn claimed(entry: &ClaimedEntry) -> Self {
        Self {
            status: Status::Running.as_str().to_owned(),
            version: Some(entry.version),
            run_id: Some(entry.run_id.to_string()),
        }
    }

    /// The facts of an entry.
    pub(super) fn found(entry: &crate::changelog::entry::Entry) -> Self {
        Self {
            status: entry.status.as_str().to_owned(),
            version: entry.version,
            run_id: entry.run_id.as_ref().map(ToString::to_string),
        }
    }
}

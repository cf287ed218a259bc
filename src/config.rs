//! What the JavaScript side hands over, turned into the core's own types.
//!
//! Keys, layers and messages about configuration are `lib/config`'s; by the time a value is here it
//! has been checked, so what fails here names the value and nothing else.

pub mod import;

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::host::{Between, OnInterrupted};
use crate::lock::lease::{Identity, OnLockLost, RunId};
use crate::lock::timing::{InvalidTtl, Timing};
use crate::lock::wait::WaitPolicy;
use crate::migration::{InvalidName, MigrationName, Namespace};
use crate::plan::{Foreign, MarkAs, OutOfOrder, Policy, Request, Scope, Selection};

/// A kit's settings. The shape is `lib/contract.d.ts`'s.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "documented where users meet them, in index.d.ts")]
pub struct Settings {
    pub uri: String,
    pub api_version: Option<String>,
    pub db_name: String,
    pub migrations_dir: PathBuf,
    pub file_extensions: Vec<String>,
    pub migrations_collection: String,
    pub lock_collection: String,
    pub namespace: Namespace,
    pub lock_ttl_seconds: u64,
    pub on_lock_lost: OnLockLost,
    pub strict: bool,
    pub use_transaction: bool,
    pub on_interrupted: OnInterrupted,
    pub out_of_order: OutOfOrder,
    pub between: Between,
    pub host: String,
    pub pid: u32,
    pub user: String,
    pub environment: String,
    pub service: Option<String>,
}

/// Settings or arguments that can't be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidSettings {
    /// They do not have the agreed shape: a bug in us.
    #[error("the core was called with settings of the wrong shape: {0}")]
    Shape(String),
    /// A file name that is none.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A TTL that no lease can have.
    #[error(transparent)]
    Ttl(#[from] InvalidTtl),
    /// Arguments that contradict each other or are out of range.
    #[error("{message}")]
    Argument {
        /// What is wrong.
        message: String,
        /// The arguments.
        facts: Value,
    },
}

/// One call of `up`, `down`, `redo` or `mark`. The shape is `lib/contract.d.ts`'s.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "documented where users meet them, in index.d.ts")]
pub struct RunRequest {
    #[serde(flatten)]
    pub command: Command,
    pub no_lock: bool,
    pub on_lock_held: OnLockHeld,
    pub lock_wait_timeout_ms: Option<u64>,
    pub lock_poll_interval_ms: Option<u64>,
}

/// What to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
#[expect(missing_docs, reason = "documented where users meet them, in index.d.ts")]
pub enum Command {
    Up {
        file: Option<String>,
        to: Option<String>,
        step: bool,
        force: bool,
        #[serde(default, rename = "forceFresh")]
        force_fresh: bool,
    },
    Down {
        file: Option<String>,
        to: Option<String>,
        batch: Option<i64>,
        steps: Option<i64>,
        force: bool,
    },
    Redo {
        file: Option<String>,
    },
    Mark {
        file: String,
        state: MarkAs,
        reason: Option<String>,
    },
}

/// What to do about a lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "documented where users meet them, in index.d.ts")]
pub enum OnLockHeld {
    Throw,
    Wait,
}

impl Settings {
    /// How strict to be.
    pub fn policy(&self) -> Policy {
        Policy {
            strict: self.strict,
            use_transaction: self.use_transaction,
            on_interrupted: self.on_interrupted,
            out_of_order: self.out_of_order,
            foreign: Foreign::default(),
        }
    }

    /// The lease's durations.
    ///
    /// # Errors
    /// [`InvalidSettings::Ttl`].
    pub fn timing(&self) -> Result<Timing, InvalidSettings> {
        Ok(Timing::new(Duration::from_secs(self.lock_ttl_seconds))?)
    }

    /// Who a new run of ours is.
    pub fn identity(&self, operation: &str) -> Identity {
        Identity {
            run_id: RunId::random(),
            namespace: self.namespace.clone(),
            changelog: self.migrations_collection.clone(),
            host: self.host.clone(),
            pid: self.pid,
            user: self.user.clone(),
            operation: operation.to_owned(),
        }
    }
}

impl RunRequest {
    /// The request, checked.
    ///
    /// # Errors
    /// [`InvalidSettings::Name`] or [`InvalidSettings::Argument`].
    pub fn request(&self) -> Result<Request, InvalidSettings> {
        match &self.command {
            Command::Up { file, to, step, force, .. } => {
                let scope = scope(file.as_deref(), to.as_deref())?;
                Ok(Request::Up { scope, step: *step, force: *force })
            }
            Command::Down { file, to, batch, steps, force } => {
                let selection = selection(file.as_deref(), to.as_deref(), *batch, *steps)?;
                Ok(Request::Down { selection, force: *force })
            }
            Command::Redo { file } => {
                let file = file.as_deref().map(MigrationName::new).transpose()?;
                Ok(Request::Redo { file })
            }
            Command::Mark { file, state, reason } => {
                let name = MigrationName::new(file)?;
                Ok(Request::Mark { name, state: *state, reason: reason.clone() })
            }
        }
    }

    /// What to do about another tool's changelog.
    pub fn foreign(&self) -> Foreign {
        match self.command {
            Command::Up { force_fresh: true, .. } => Foreign::Ignore,
            Command::Up { .. }
            | Command::Down { .. }
            | Command::Redo { .. }
            | Command::Mark { .. } => Foreign::Refuse,
        }
    }

    /// What to do about a lock that is held; `None` for no lock.
    pub fn lock(&self) -> Option<WaitPolicy> {
        let wait = WaitPolicy::Wait {
            budget: self.lock_wait_timeout_ms.map(Duration::from_millis),
            poll: self.lock_poll_interval_ms.map(Duration::from_millis),
        };
        match (self.no_lock, self.on_lock_held) {
            (true, _) => None,
            (false, OnLockHeld::Throw) => Some(WaitPolicy::Fail),
            (false, OnLockHeld::Wait) => Some(wait),
        }
    }
}

fn scope(file: Option<&str>, to: Option<&str>) -> Result<Scope, InvalidSettings> {
    match (file, to) {
        (None, None) => Ok(Scope::All),
        (Some(file), None) => Ok(Scope::File(MigrationName::new(file)?)),
        (None, Some(to)) => Ok(Scope::Through(MigrationName::new(to)?)),
        (Some(_), Some(_)) => Err(InvalidSettings::Argument {
            message: "a file and `to` exclude each other".to_owned(),
            facts: serde_json::json!({ "filename": file, "to": to }),
        }),
    }
}

fn selection(
    file: Option<&str>,
    to: Option<&str>,
    batch: Option<i64>,
    steps: Option<i64>,
) -> Result<Selection, InvalidSettings> {
    let refuse = |message: &str| {
        let facts =
            serde_json::json!({ "filename": file, "to": to, "batch": batch, "steps": steps });
        Err(InvalidSettings::Argument { message: message.to_owned(), facts })
    };
    match (file, to, batch, steps) {
        (None, None, None, None) => Ok(Selection::LastBatch),
        (Some(file), None, None, None) => Ok(Selection::File(MigrationName::new(file)?)),
        (None, Some(to), None, None) => Ok(Selection::To(MigrationName::new(to)?)),
        (None, None, Some(batch), None) if batch >= 1 => Ok(Selection::Batch(batch)),
        (None, None, Some(_), None) => refuse("batch must be a whole number, 1 or more"),
        (None, None, None, Some(steps)) => match u32::try_from(steps) {
            Ok(steps @ 1..) => Ok(Selection::Steps(steps)),
            Ok(0) | Err(_) => refuse("steps must be a whole number, 1 or more"),
        },
        _ => refuse("a file, `to`, a batch and a number of steps exclude each other"),
    }
}

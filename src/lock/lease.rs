//! Who holds the lock: the facts of one lease, as written by us and as read from anyone.
//!
//! What we write is strict ([`Identity`]); what we read is lenient ([`Holder`]): other versions and
//! broken hands leave odd documents, and an operator must still be shown what is there.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::migration::Namespace;

/// The random value that proves a lease to be ours. New for every acquisition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct OwnerToken(String);

impl OwnerToken {
    /// A fresh random token (UUID version 4, as 1.x writes).
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    /// A token read from a document or shown to an operator.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The random name of one run: stored in the lock, in every entry it touches, and as the `appName`
/// of its connections, so that a later run can recognise what it left behind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A fresh random id.
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    /// An id read from a document.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The `appName` of every connection of the run, as `$currentOp` shows it.
    pub fn app_name(&self) -> String {
        format!("mmk/{}", self.0)
    }

    /// The `appName` of the connection that renews the run's lease.
    pub fn lock_app_name(&self) -> String {
        format!("mmk-hb/{}", self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a runner says of itself in the lock document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The run that asks for the lock.
    pub run_id: RunId,
    /// Whose history it works on.
    pub namespace: Namespace,
    /// The collection that holds that history.
    pub changelog: String,
    /// Host name of the machine.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Operating system user.
    pub user: String,
    /// What it is about to do: `up`, `down` …
    pub operation: String,
}

/// A lock document as it was read, however odd its shape. Instants are the server's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The owner token; `None` when it is missing or no text.
    pub owner: Option<String>,
    /// The run, when the holder is of our kind.
    pub run_id: Option<String>,
    /// The namespace, `None` for the default one.
    pub namespace: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Process id.
    pub pid: Option<i64>,
    /// Operating system user.
    pub user: Option<String>,
    /// What the holder does: `up`, `down` …
    pub operation: Option<String>,
    /// The migration that it is running, when an entry says so.
    pub running: Option<String>,
    /// Since when it has held the lock, ms since 1970.
    pub acquired_at: Option<i64>,
    /// Its last renewal, ms since 1970.
    pub locked_at: Option<i64>,
    /// When its lease ends unless it renews, ms since 1970. `None`: nobody can tell.
    pub expires_at: Option<i64>,
    /// The server's clock when this was read, ms since 1970.
    pub now: i64,
    /// The length of its lease.
    pub ttl_ms: Option<i64>,
    /// How often it has renewed; `None` unless it is a lease of our own kind.
    pub beats: Option<i64>,
    /// Is its lease over by the server's clock? After a change of primary that is not enough to get
    /// the lock at once.
    pub expired: bool,
}

/// Why a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LossCause {
    /// A renewal found that the lock document is not ours any more.
    Superseded,
    /// No renewal was acknowledged before the trust window closed.
    Deadline,
    /// A transaction found that a later run has raised the fence.
    Fenced,
}

/// What a run does when its lease is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLockLost {
    /// It stops: no further migration starts, and nothing more is recorded.
    #[default]
    Stop,
    /// It goes on as 1.x does, says so again and again, and records what its preconditions still
    /// match.
    Warn,
}

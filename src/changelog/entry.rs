//! Changelog entries: what the database knows of one migration.

use serde::Serialize;

use crate::lock::lease::RunId;
use crate::migration::{Direction, MigrationName, Namespace};

/// The `_id` of an entry, as canonical extended JSON: opaque to everyone but the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntryKey(pub String);

/// The `status` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// A body is running, or was when its run ended.
    Running,
    /// Its `up` is done.
    Applied,
    /// Its `up` threw.
    Failed,
    /// Its `down` is done.
    Reverted,
    /// Something that we don't know: a later version's or a broken hand's.
    Other(String),
}

impl Status {
    /// The stored text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Running => "running",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Reverted => "reverted",
            Self::Other(text) => text,
        }
    }

    /// Reads the stored text.
    pub fn from_text(text: &str) -> Self {
        match text {
            "running" => Self::Running,
            "applied" => Self::Applied,
            "failed" => Self::Failed,
            "reverted" => Self::Reverted,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// What a body threw, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryError {
    /// `error.name`, or the kind of value that was thrown.
    pub name: String,
    /// Its message.
    pub message: String,
}

/// One entry. Fields that are missing or of an unexpected type are `None`: an odd entry is shown,
/// never a reason to fail. Instants are ms since 1970 on the server's clock (the writer's, for
/// entries by 1.x).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its `_id`.
    pub key: EntryKey,
    /// File name, as stored.
    pub name: String,
    /// Whose history it belongs to.
    pub namespace: Namespace,
    /// Where it stands.
    pub status: Status,
    /// Goes up by one at every change; `None` for entries that only 1.x has written.
    pub version: Option<i64>,
    /// The run that changed it last.
    pub run_id: Option<RunId>,
    /// What it was running last.
    pub direction: Option<Direction>,
    /// The batch it was applied in.
    pub batch: Option<i64>,
    /// When its body last began.
    pub started_at: Option<i64>,
    /// When it was applied.
    pub applied_at: Option<i64>,
    /// When it was reverted.
    pub reverted_at: Option<i64>,
    /// How long the body took, ms.
    pub duration_ms: Option<i64>,
    /// Checksum of the file that was applied, lower-case hex.
    pub checksum: Option<String>,
    /// The file's own description.
    pub description: Option<String>,
    /// Operating system user of the last run.
    pub executed_by: Option<String>,
    /// Host name of the last run.
    pub host: Option<String>,
    /// The tool that an imported entry comes from.
    pub origin: Option<String>,
    /// What the last body threw.
    pub error: Option<EntryError>,
    /// Why somebody marked it by hand.
    pub reason: Option<String>,
    /// How it stood before, newest last: at most [`Entry::HISTORY`] of them.
    pub history: Vec<PastState>,
}

/// How an entry stood before it was claimed again or marked: the facts that the change writes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastState {
    /// Where it stood.
    pub status: Status,
    /// The run that had brought it there.
    pub run_id: Option<RunId>,
    /// The batch it was applied in.
    pub batch: Option<i64>,
    /// When it was applied.
    pub applied_at: Option<i64>,
    /// When it was reverted.
    pub reverted_at: Option<i64>,
    /// Checksum of the file that was applied.
    pub checksum: Option<String>,
    /// Operating system user of that run.
    pub executed_by: Option<String>,
    /// What its body had thrown.
    pub error: Option<EntryError>,
    /// Why somebody had marked it by hand.
    pub reason: Option<String>,
}

impl Entry {
    /// How many past states an entry keeps: enough to see what happened, too few to weigh on a read.
    pub const HISTORY: usize = 10;

    /// An entry of which nothing is known but its `_id`.
    pub fn blank(key: EntryKey) -> Self {
        Self {
            key,
            name: String::new(),
            namespace: Namespace::default(),
            status: Status::Other(String::new()),
            version: None,
            run_id: None,
            direction: None,
            batch: None,
            started_at: None,
            applied_at: None,
            reverted_at: None,
            duration_ms: None,
            checksum: None,
            description: None,
            executed_by: None,
            host: None,
            origin: None,
            error: None,
            reason: None,
            history: Vec::new(),
        }
    }

    /// Is the migration's `up` done and not taken back?
    pub fn is_applied(&self) -> bool {
        self.status == Status::Applied
    }

    /// Has its `up` been done, whatever has become of its `down`?
    pub fn is_revertible(&self) -> bool {
        match self.status {
            Status::Applied => true,
            Status::Running => self.direction == Some(Direction::Down),
            Status::Failed | Status::Reverted | Status::Other(_) => false,
        }
    }

    /// How it stands, as its successor will remember it.
    pub fn past(&self) -> PastState {
        PastState {
            status: self.status.clone(),
            run_id: self.run_id.clone(),
            batch: self.batch,
            applied_at: self.applied_at,
            reverted_at: self.reverted_at,
            checksum: self.checksum.clone(),
            executed_by: self.executed_by.clone(),
            error: self.error.clone(),
            reason: self.reason.clone(),
        }
    }

    /// Is this entry about that file?
    pub fn is_about(&self, name: &MigrationName) -> bool {
        self.name == name.as_str()
            || MigrationName::new(&self.name).is_ok_and(|stored| stored == *name)
    }
}

//! The port to the changelog: every write carries its precondition.
//!
//! "I read it, therefore I may write it" is a race. So a write names the version it has read, and
//! what matched nothing is a *conflict*: an explicit outcome that comes with what is there now.

use std::future::Future;

use super::entry::{Entry, EntryError, EntryKey, Status};
use crate::fault::StoreFault;
use crate::lock::lease::{Identity, RunId};
use crate::lock::proof::StillHeld;
use crate::migration::{Direction, MigrationName, Namespace};

/// Where the entries live.
///
/// # Guarantees
/// Of any number of concurrent writes with the same precondition at most one is
/// [`Written::Done`]. Entries are never deleted. Reading creates nothing.
pub trait ChangelogStore: Send + Sync + 'static {
    /// All entries of one namespace, in no particular order.
    fn entries(
        &self,
        namespace: &Namespace,
    ) -> impl Future<Output = Result<Vec<Entry>, StoreFault>> + Send;

    /// Does this database know multi-document transactions?
    fn transactions(&self) -> impl Future<Output = Result<bool, StoreFault>> + Send;

    /// Moves an entry to `running` for one run, creating it if there is none.
    fn claim(&self, proof: &StillHeld<'_>, claim: &Claim) -> impl Future<Output = Written> + Send;

    /// Ends what a claim began.
    fn settle(
        &self,
        proof: &StillHeld<'_>,
        settlement: &Settlement,
    ) -> impl Future<Output = Written> + Send;

    /// The command that does what [`ChangelogStore::settle`] does, for somebody else to run as part
    /// of a transaction. It replies with `n: 1` when its precondition held.
    fn settle_command(&self, settlement: &Settlement) -> Vec<u8>;
}

/// The outcome of a conditional write.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// It is written; this is the entry now.
    Done(Entry),
    /// Its precondition did not hold; this is the entry now, if there is one.
    Conflict(Option<Entry>),
    /// It may or may not be written, and nobody could be asked.
    Unknown(StoreFault),
    /// The server refuses the write.
    Refused(StoreFault),
}

/// What was read before a write, and must still be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// There was no entry.
    Absent,
    /// There was this one.
    Present {
        /// Its `_id`.
        key: EntryKey,
        /// Its status.
        status: Status,
        /// Its version; `None` for entries that only 1.x has written.
        version: Option<i64>,
    },
}

impl Expected {
    /// The precondition "as I read it".
    pub fn of(entry: Option<&Entry>) -> Self {
        entry.map_or(Self::Absent, |entry| Self::Present {
            key: entry.key.clone(),
            status: entry.status.clone(),
            version: entry.version,
        })
    }
}

/// A claim: what to write when a body is about to begin.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The migration.
    pub name: MigrationName,
    /// What must still be true.
    pub expected: Expected,
    /// What will run.
    pub direction: Direction,
    /// The batch of an `up`; a `down` keeps the entry's own.
    pub batch: Option<i64>,
    /// The file's checksum; stored by an `up` only.
    pub checksum: Option<String>,
    /// The file's description.
    pub description: Option<String>,
    /// Who runs it.
    pub identity: Identity,
    /// `NODE_ENV`, stored for the reader.
    pub environment: String,
    /// The service's name, stored for the reader.
    pub service: Option<String>,
}

/// How a body ended, to be written over the claim of the same run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The claimed entry's `_id`.
    pub key: EntryKey,
    /// The claimed entry's version.
    pub version: i64,
    /// The run that claimed it.
    pub run_id: RunId,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// `up` is done: the entry becomes `applied`.
    Applied {
        /// How long the body took; `None` when it is written before that is known.
        duration_ms: Option<i64>,
    },
    /// `down` is done: the entry becomes `reverted`.
    Reverted,
    /// `up` threw: the entry becomes `failed`.
    UpFailed(EntryError),
    /// `down` threw: the entry is `applied` as before, with the error noted.
    DownFailed(EntryError),
}

//! The port to the changelog: every write carries its precondition.
//!
//! "I read it, therefore I may write it" is a race. So a write names the version it has read, and
//! what matched nothing is a *conflict*: an explicit outcome that comes with what is there now.

use std::future::Future;

use super::entry::{Entry, EntryError, EntryKey, Status};
use crate::fault::StoreFault;
use crate::import::source::Source;
use crate::lock::lease::{Identity, RunId};
use crate::lock::proof::StillHeld;
use crate::migration::{Direction, MigrationName, Namespace};

/// Where other tools' changelogs are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookout<'a> {
    /// In this collection, whatever is in it.
    In(&'a str),
    /// In every collection that is not ours: those that other tools use unless they are told
    /// otherwise, and those whose first document looks like one of theirs. Of the latter, which may be
    /// anything, the first [`Self::GLANCE`] documents count.
    Everywhere,
}

impl Lookout<'_> {
    /// More migrations than anybody has.
    pub const GLANCE: usize = 10_000;
}

/// Where the entries live.
///
/// # Guarantees
/// Of any number of concurrent writes with the same precondition at most one is
/// [`Written::Done`]. Entries are never deleted, except by whoever takes back the claim that created
/// one. Reading creates nothing. What a claim or a mark writes over goes into the entry's history,
/// the oldest of it giving way.
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

    /// Can this store settle one migration and claim the next in one command? Otherwise nothing is
    /// won by claiming ahead, on a proof that is as old as the settlement.
    fn claims_ahead(&self) -> bool;

    /// Settles one migration and claims the next, in one command where the store can. Nothing is
    /// claimed unless the settlement is written.
    fn settle_and_claim(
        &self,
        proof: &StillHeld<'_>,
        settlement: &Settlement,
        claim: &Claim,
    ) -> impl Future<Output = Advance> + Send;

    /// Takes a claim back whose body has not begun: the entry stands again as it did before, or is
    /// gone if the claim created it. An entry that is not as the claim left it stays as it is.
    ///
    /// # Errors
    /// It may still be claimed.
    fn withdraw(
        &self,
        proof: &StillHeld<'_>,
        claimed: &ClaimedEntry,
        expected: &Expected,
    ) -> impl Future<Output = Result<(), StoreFault>> + Send;

    /// Changes an entry by hand, without a body, creating it if it is marked applied and there is
    /// none.
    fn mark(&self, proof: &StillHeld<'_>, mark: &Mark) -> impl Future<Output = Written> + Send;

    /// Creates an entry for a migration that another tool has applied. One that is there stays as it
    /// is, whatever it says: a conflict.
    fn adopt(
        &self,
        proof: &StillHeld<'_>,
        adoption: &Adoption,
    ) -> impl Future<Output = Written> + Send;

    /// What may be other tools' changelogs, with their documents.
    fn foreign(
        &self,
        lookout: Lookout<'_>,
    ) -> impl Future<Output = Result<Vec<Source>, StoreFault>> + Send;

    /// Is a unique index in the way of entries for these migrations, as it lets a name in once only,
    /// whatever its namespace, and another namespace has the name already?
    ///
    /// 1.x makes such an index. A fault says that nobody could look, not that nothing is there.
    fn name_index(
        &self,
        namespace: &Namespace,
        names: &[&MigrationName],
    ) -> impl Future<Output = Result<Option<NameIndex>, StoreFault>> + Send;

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

/// A unique index on the bare name, and whom it keeps out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameIndex {
    /// Its name.
    pub index: String,
    /// The names that another namespace has.
    pub names: Vec<String>,
}

/// What came of a settlement and a claim together.
#[derive(Debug, Clone, PartialEq)]
pub enum Advance {
    /// The settlement is written, and this came of the claim.
    Settled(Claiming),
    /// The settlement's precondition did not hold; this is its entry now, if there is one. Nothing
    /// is claimed.
    Conflict(Option<Entry>),
    /// Each of the two may or may not be written, and nobody could be asked.
    Unknown(StoreFault),
    /// The server refuses the settlement. Nothing is written.
    Refused(StoreFault),
}

/// What came of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Claiming {
    /// The entry is ours to run.
    Ours(ClaimedEntry),
    /// Its precondition did not hold; this is the entry now, if there is one.
    Conflict(Option<Entry>),
    /// It may or may not be claimed, and nobody could be asked.
    Unknown(StoreFault),
    /// The server refuses the claim. Nothing is claimed.
    Refused(StoreFault),
}

impl Claiming {
    /// What the outcome of a claim's write says.
    pub fn of(written: Written, claim: &Claim) -> Self {
        match written {
            Written::Done(entry) => Self::Ours(ClaimedEntry {
                key: entry.key,
                version: entry.version.unwrap_or_default(),
                run_id: claim.identity.run_id.clone(),
            }),
            Written::Conflict(found) => Self::Conflict(found),
            Written::Unknown(fault) => Self::Unknown(fault),
            Written::Refused(fault) => Self::Refused(fault),
        }
    }
}

/// An entry that is ours to run: what its settlement must name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedEntry {
    /// Its `_id`.
    pub key: EntryKey,
    /// Its version since the claim.
    pub version: i64,
    /// The run that claimed it.
    pub run_id: RunId,
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

/// A mark: what a person says of a migration, whatever its bodies have done.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The migration.
    pub name: MigrationName,
    /// What must still be true.
    pub expected: Expected,
    /// What is said.
    pub verdict: Verdict,
    /// Why.
    pub reason: Option<String>,
    /// Who says it.
    pub identity: Identity,
    /// `NODE_ENV`, stored for the reader.
    pub environment: String,
    /// The service's name, stored for the reader.
    pub service: Option<String>,
}

/// What a mark makes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It counts as applied from now on.
    Applied {
        /// In this batch.
        batch: i64,
        /// By the file with this checksum.
        checksum: String,
    },
    /// It is applied as before, and the file with this checksum is as good as the one that was run.
    Accepted {
        /// The file's checksum.
        checksum: String,
    },
    /// It counts as reverted from now on.
    Reverted,
}

impl Verdict {
    /// The status that it leaves.
    pub fn status(&self) -> Status {
        match self {
            Self::Applied { .. } | Self::Accepted { .. } => Status::Applied,
            Self::Reverted => Status::Reverted,
        }
    }
}

/// The `executedBy` of an entry that was adopted, as 1.x stores it.
pub const ADOPTER: &str = "mmk-import";

/// The `origin` of an entry that counts as applied because somebody said so.
pub const MARKED: &str = "mark";

/// An adoption: what another tool has applied, as an entry of ours.
#[derive(Debug, Clone)]
pub struct Adoption {
    /// The migration.
    pub name: MigrationName,
    /// Its batch.
    pub batch: i64,
    /// When it was applied, ms since 1970; `None` when nobody knows: then the time of the write.
    pub applied_at: Option<i64>,
    /// Checksum of the file; empty when there is nothing to compare with.
    pub checksum: String,
    /// The tool.
    pub origin: &'static str,
    /// Who adopts it.
    pub identity: Identity,
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

impl Settlement {
    /// Is this entry still as its claim left it?
    pub fn fits(&self, entry: &Entry) -> bool {
        entry.status == Status::Running
            && entry.version == Some(self.version)
            && entry.run_id.as_ref() == Some(&self.run_id)
    }
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

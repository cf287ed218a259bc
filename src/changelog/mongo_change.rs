//! What claims, marks, adoptions and settlements make of an entry, and on what condition. Pure values,
//! no I/O.
//!
//! This is said once for both forms of updates: `mongo_pipeline` and `mongo_operators` put it into
//! words that a server takes. All instants are the primary's.
//!
//! An entry that we create has an `_id` made of namespace and name: of concurrent first claims one
//! creates it and the others find it, without any index. Entries by 1.x keep their ObjectId and are
//! claimed by it.

use mongodb::bson::{Bson, DateTime, Document, doc};

use super::entry::{Entry, EntryError, EntryKey, Status};
use super::mongo_entry::{created_id, id_of, named, text_id};
use super::store::{
    ADOPTER, Adoption, Claim, ClaimedEntry, Expected, MARKED, Mark, Outcome, Settlement, Verdict,
};
use crate::fault::{FaultKind, StoreFault};
use crate::lock::lease::{Identity, RunId};
use crate::migration::{Direction, MigrationName};
use crate::mutant::Mutant;

/// One conditional write, and how to recognise it afterwards.
pub(super) struct Change {
    /// The entry's `_id`.
    pub id: Bson,
    /// What must still be true.
    pub filter: Document,
    /// What becomes of the entry.
    pub fields: Fields,
    /// What it does about an entry that is there, or is not.
    pub kind: Kind,
    /// Another entry with this content rules out the one to be created.
    pub twin: Document,
    /// The run that changes it.
    pub run_id: RunId,
    /// The entry's version afterwards.
    pub version: i64,
    status: Status,
}

/// How a change treats what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It creates the entry and leaves one that is there as it is.
    Creates,
    /// It adds how the entry stood to its history.
    Remembers,
    /// It ends what a claim began.
    Settles,
}

/// What becomes of the fields that a change is about.
pub(super) type Fields = Vec<(&'static str, Becomes)>;

/// What becomes of one field.
pub(super) enum Becomes {
    /// This value.
    Value(Bson),
    /// The server's time at the write.
    Now,
    /// It is there no more.
    Missing,
    /// The version after the one that is there: [`Change::version`].
    NextVersion,
    /// The time since `startedAt` in ms, where it can be told at the write; else null.
    Elapsed,
    /// The history, with how the entry stood as its newest state.
    LongerHistory,
}

impl Change {
    /// Is this entry what the change makes of it? A lost reply leaves no other way to know.
    pub(super) fn made(&self, entry: &Entry) -> bool {
        entry.run_id.as_ref() == Some(&self.run_id)
            && entry.version == Some(self.version)
            && entry.status == self.status
    }

    /// Is this the entry that the change would create, under a name that is not its own? Then nothing
    /// that anybody ran is in the way.
    pub(super) fn renamed(&self, entry: &Entry) -> Option<StoreFault> {
        let has_our_id = id_of(&entry.key) == self.id;
        let named = text_id(&entry.name, &entry.namespace);
        if !self.creates() || !has_our_id || named == self.id {
            return None;
        }
        let message = format!(
            "the entry with the _id {} has the name and namespace of {named}: somebody has changed them. \
             Give it back what its _id says, or remove it and `mmk mark` what it was about",
            self.id
        );
        Some(StoreFault::new(FaultKind::Rejected, message))
    }

    /// Is the entry created when it is missing?
    pub(super) fn creates(&self) -> bool {
        self.kind == Kind::Creates
    }
}

/// The change that a claim asks for.
pub(super) fn claim(claim: &Claim) -> Change {
    let fields = claimed_fields(claim);
    conditional(&claim.name, &claim.identity, &claim.expected, Status::Running, fields)
}

/// The change that a mark asks for.
pub(super) fn mark(mark: &Mark) -> Change {
    let (status, fields) = (mark.verdict.status(), marked_fields(mark));
    conditional(&mark.name, &mark.identity, &mark.expected, status, fields)
}

/// The change that an adoption asks for.
pub(super) fn adopt(adoption: &Adoption) -> Change {
    let fields = adopted_fields(adoption);
    let Adoption { name, identity, .. } = adoption;
    conditional(name, identity, &Expected::Absent, Status::Applied, fields)
}

/// A change of an entry as it was read, or the creation of one that was not there.
fn conditional(
    name: &MigrationName,
    identity: &Identity,
    expected: &Expected,
    status: Status,
    mut fields: Fields,
) -> Change {
    let (kind, id, filter, version) = match expected {
        Expected::Absent => {
            let id = created_id(name, &identity.namespace);
            fields.push(("name", value(name.as_str())));
            fields.push(("version", value(FIRST_VERSION)));
            if let Some(namespace) = identity.namespace.name() {
                fields.push(("namespace", value(namespace)));
            }
            (Kind::Creates, id.clone(), doc! { "_id": id }, FIRST_VERSION)
        }
        Expected::Present { key, status, version } => {
            let id = id_of(key);
            // A version of null finds missing ones too, which is what entries of 1.x have.
            let filter = doc! { "_id": id.clone(), "status": status.as_str(), "version": version };
            fields.push(("version", Becomes::NextVersion));
            fields.push(("history", Becomes::LongerHistory));
            (Kind::Remembers, id, filter, version.unwrap_or_default() + 1)
        }
    };
    let (twin, run_id) = (named(name, &identity.namespace), identity.run_id.clone());
    Change { id, filter, fields, kind, twin, run_id, version, status }
}

/// The change that a settlement asks for.
pub(super) fn settle(settlement: &Settlement) -> Change {
    let Settlement { key, version, run_id, outcome } = settlement;
    let id = id_of(key);
    let (status, mut fields) = settled_fields(outcome);
    fields.push(("status", value(status.as_str())));
    fields.push(("version", Becomes::NextVersion));
    let mut filter = as_claimed(key, *version, run_id);
    if Mutant::NoPrecondition.is_planted() {
        filter = doc! { "_id": id.clone() };
    }
    let (twin, run_id) = (doc! { "_id": id.clone() }, run_id.clone());
    Change { id, filter, fields, kind: Kind::Settles, twin, run_id, version: version + 1, status }
}

/// An entry as its claim left it.
pub(super) fn left_by(claimed: &ClaimedEntry) -> Document {
    as_claimed(&claimed.key, claimed.version, &claimed.run_id)
}

/// An entry of this version that this run has claimed.
pub(super) fn as_claimed(key: &EntryKey, version: i64, run_id: &RunId) -> Document {
    let status = Status::Running;
    doc! {
        "_id": id_of(key), "status": status.as_str(), "version": version, "runId": run_id.as_str(),
    }
}

fn claimed_fields(claim: &Claim) -> Fields {
    let mut fields = vec![
        ("status", value(Status::Running.as_str())),
        ("direction", value(claim.direction.as_str())),
        ("runId", value(claim.identity.run_id.as_str())),
        ("startedAt", Becomes::Now),
        ("executedBy", value(&claim.identity.user)),
        ("host", value(&claim.identity.host)),
        ("error", Becomes::Missing),
        ("reason", Becomes::Missing),
    ];
    match claim.direction {
        // What was applied, and when, is still true until the `down` is done.
        Direction::Down => {}
        Direction::Up => {
            fields.extend(claim.batch.map(|batch| ("batch", value(number(batch)))));
            fields.extend([
                ("checksum", value_or_missing(claim.checksum.as_deref())),
                ("environment", value(&claim.environment)),
                ("description", value_or_missing(claim.description.as_deref())),
                ("service", value_or_missing(claim.service.as_deref())),
                // An imported entry whose `up` runs here is imported no more.
                ("origin", Becomes::Missing),
            ]);
        }
    }
    fields
}

fn marked_fields(mark: &Mark) -> Fields {
    let mut fields = vec![
        ("status", value(mark.verdict.status().as_str())),
        ("runId", value(mark.identity.run_id.as_str())),
        ("executedBy", value(&mark.identity.user)),
        ("host", value(&mark.identity.host)),
        ("error", Becomes::Missing),
        ("reason", value_or_missing(mark.reason.as_deref())),
    ];
    match &mark.verdict {
        Verdict::Applied { batch, checksum } => fields.extend([
            ("batch", value(number(*batch))),
            ("checksum", value(checksum)),
            ("environment", value(&mark.environment)),
            ("service", value_or_missing(mark.service.as_deref())),
            ("appliedAt", Becomes::Now),
            ("revertedAt", Becomes::Missing),
            ("duration", value(0)),
            ("origin", value(MARKED)),
        ]),
        Verdict::Accepted { checksum } => fields.push(("checksum", value(checksum))),
        Verdict::Reverted => fields.push(("revertedAt", Becomes::Now)),
    }
    fields
}

fn adopted_fields(adoption: &Adoption) -> Fields {
    let applied_at = adoption.applied_at.map(DateTime::from_millis);
    vec![
        ("status", value(Status::Applied.as_str())),
        ("direction", value(Direction::Up.as_str())),
        ("runId", value(adoption.identity.run_id.as_str())),
        ("batch", value(number(adoption.batch))),
        ("appliedAt", applied_at.map_or(Becomes::Now, value)),
        ("duration", value(0)),
        ("checksum", value(&adoption.checksum)),
        ("environment", value(IMPORTED)),
        ("executedBy", value(ADOPTER)),
        ("origin", value(adoption.origin)),
    ]
}

fn settled_fields(outcome: &Outcome) -> (Status, Fields) {
    match outcome {
        Outcome::Applied { duration_ms } => (
            Status::Applied,
            vec![
                ("appliedAt", Becomes::Now),
                ("duration", duration_ms.map_or(Becomes::Elapsed, |ms| value(number(ms)))),
                ("revertedAt", Becomes::Missing),
                ("error", Becomes::Missing),
            ],
        ),
        Outcome::Reverted => {
            (Status::Reverted, vec![("revertedAt", Becomes::Now), ("error", Becomes::Missing)])
        }
        Outcome::UpFailed(error) => (Status::Failed, vec![("error", thrown(error))]),
        Outcome::DownFailed(error) => (Status::Applied, vec![("error", thrown(error))]),
    }
}

fn thrown(error: &EntryError) -> Becomes {
    value(doc! { "name": &error.name, "message": &error.message })
}

fn value(value: impl Into<Bson>) -> Becomes {
    Becomes::Value(value.into())
}

fn value_or_missing(text: Option<&str>) -> Becomes {
    text.map_or(Becomes::Missing, value)
}

/// As small as it fits, so that a batch of ours has the type of a batch of 1.x.
fn number(value: i64) -> Bson {
    i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32)
}

/// What 1.x stores as the environment of an imported entry.
const IMPORTED: &str = "imported";

const FIRST_VERSION: i64 = 1;

/// How many past states are kept, as servers count.
pub(super) const KEPT: i32 = Entry::HISTORY as i32;

/// What is remembered of a state: the fields that claims and marks write over.
pub(super) const PAST: &[&str] = &[
    "status",
    "direction",
    "runId",
    "batch",
    "startedAt",
    "appliedAt",
    "revertedAt",
    "duration",
    "checksum",
    "environment",
    "executedBy",
    "host",
    "origin",
    "error",
    "reason",
];

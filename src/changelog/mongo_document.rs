//! How entries look in MongoDB: documents, preconditions and the pipelines that change them. Pure
//! values, no I/O.
//!
//! Fields keep the names and types that 1.x reads. An entry that we create has an `_id` made of
//! namespace and name: of concurrent first claims one inserts and the others find it, without any
//! index. Entries by 1.x keep their ObjectId and are claimed by it.
//!
//! All instants are the primary's (`$$NOW`), and every user's text goes through `$literal`: a
//! description may begin with a dollar.

use mongodb::bson::{Bson, DateTime, Document, RawBsonRef, RawDocument, doc};

use super::entry::{Entry, EntryError, EntryKey, PastState, Status};
use super::store::{
    ADOPTER, Adoption, Claim, Expected, MARKED, Mark, Outcome, Settlement, Verdict,
};
use crate::lock::lease::{Identity, RunId};
use crate::migration::{Direction, MigrationName, Namespace};
use crate::mutant::Mutant;

/// One conditional write, and how to recognise it afterwards.
pub(super) struct Change {
    /// The entry's `_id`.
    pub id: Bson,
    /// What must still be true.
    pub filter: Document,
    /// What becomes of the entry.
    pub pipeline: Vec<Document>,
    /// Is the entry created when it is missing?
    pub creates: bool,
    /// Another entry with this content rules out the one to be created.
    pub twin: Document,
    /// The run that changes it.
    pub run_id: RunId,
    /// The entry's version afterwards.
    pub version: i64,
    status: Status,
}

impl Change {
    /// Is this entry what the change makes of it? A lost reply leaves no other way to know.
    pub(super) fn made(&self, entry: &Entry) -> bool {
        entry.run_id.as_ref() == Some(&self.run_id)
            && entry.version == Some(self.version)
            && entry.status == self.status
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
    mut fields: Document,
) -> Change {
    let (id, filter, pipeline, version) = match expected {
        Expected::Absent => {
            let id = Bson::String(created_id(name, &identity.namespace));
            fields.insert("_id", literal(id.clone()));
            fields.insert("name", literal(name.as_str()));
            fields.insert("version", literal(FIRST_VERSION));
            if let Some(namespace) = identity.namespace.name() {
                fields.insert("namespace", literal(namespace));
            }
            (id.clone(), doc! { "_id": id.clone() }, create(&id, fields), FIRST_VERSION)
        }
        Expected::Present { key, status, version } => {
            let id = id_of(key);
            let filter = doc! { "_id": id.clone(), "status": status.as_str(), "version": version };
            fields.insert("version", next_version());
            remember(&mut fields);
            let next = version.unwrap_or_default() + 1;
            (id, filter, vec![doc! { "$set": fields }], next)
        }
    };
    Change {
        creates: *expected == Expected::Absent,
        twin: named(name, &identity.namespace),
        run_id: identity.run_id.clone(),
        id,
        filter,
        pipeline,
        version,
        status,
    }
}

/// The change that a settlement asks for.
pub(super) fn settle(settlement: &Settlement) -> Change {
    let Settlement { key, version, run_id, outcome } = settlement;
    let id = id_of(key);
    let (status, mut fields) = settled_fields(outcome);
    fields.insert("status", status);
    fields.insert("version", next_version());
    let mut filter = as_claimed(key, *version, run_id);
    if Mutant::NoPrecondition.is_planted() {
        filter = doc! { "_id": id.clone() };
    }
    Change {
        filter,
        pipeline: vec![doc! { "$set": fields }],
        creates: false,
        twin: doc! { "_id": id.clone() },
        run_id: run_id.clone(),
        version: version + 1,
        status: Status::from_text(status),
        id,
    }
}

/// An entry as its claim left it.
pub(super) fn as_claimed(key: &EntryKey, version: i64, run_id: &RunId) -> Document {
    doc! { "_id": id_of(key), "status": RUNNING, "version": version, "runId": run_id.as_str() }
}

/// The entries of one namespace.
pub(super) fn of_namespace(namespace: &Namespace) -> Document {
    // Null finds missing fields too, which is what the default namespace is.
    doc! { "namespace": namespace.name() }
}

/// Reads an entry, whoever wrote it. In one pass and without a copy of the document: a boot does
/// this for every migration there ever was.
pub(super) fn entry(document: &RawDocument) -> Entry {
    let mut entry = nothing_known();
    // What follows a field that can't be read can't be told from it.
    for (field, value) in document.iter().map_while(Result::ok) {
        match field.as_str() {
            "_id" => entry.key = key_of(&Bson::try_from(value).unwrap_or(Bson::Null)),
            "name" => entry.name = text(value).unwrap_or_default(),
            "namespace" => entry.namespace = Namespace::new(text(value)),
            "status" => entry.status = Status::from_text(value.as_str().unwrap_or_default()),
            "version" => entry.version = integer(value),
            "runId" => entry.run_id = text(value).map(RunId::from_text),
            "direction" => entry.direction = direction(value),
            "batch" => entry.batch = integer(value),
            "startedAt" => entry.started_at = instant(value),
            "appliedAt" => entry.applied_at = instant(value),
            "revertedAt" => entry.reverted_at = instant(value),
            "duration" => entry.duration_ms = integer(value),
            "checksum" => entry.checksum = text(value),
            "description" => entry.description = text(value),
            "executedBy" => entry.executed_by = text(value),
            "host" => entry.host = text(value),
            "origin" => entry.origin = text(value),
            "error" => entry.error = error(value),
            "reason" => entry.reason = text(value),
            "history" => entry.history = history(value),
            _ => {}
        }
    }
    entry
}

fn nothing_known() -> Entry {
    Entry {
        key: key_of(&Bson::Null),
        name: String::new(),
        namespace: Namespace::default(),
        status: Status::from_text(""),
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

/// Past states have the names of the fields that they are the past of.
fn history(value: RawBsonRef<'_>) -> Vec<PastState> {
    let states = value.as_array().into_iter().flatten().map_while(Result::ok);
    states.filter_map(|state| Some(entry(state.as_document()?).past())).collect()
}

fn error(value: RawBsonRef<'_>) -> Option<EntryError> {
    let error = value.as_document()?;
    let part = |field| error.get_str(field).unwrap_or_default().to_owned();
    Some(EntryError { name: part("name"), message: part("message") })
}

fn direction(value: RawBsonRef<'_>) -> Option<Direction> {
    match value.as_str() {
        Some("up") => Some(Direction::Up),
        Some("down") => Some(Direction::Down),
        Some(_) | None => None,
    }
}

/// The `_id` of an entry that we create. A name holds no `/`, so no two pairs share one.
fn created_id(name: &MigrationName, namespace: &Namespace) -> String {
    format!("{}/{name}", namespace.name().unwrap_or_default())
}

fn named(name: &MigrationName, namespace: &Namespace) -> Document {
    let mut filter = of_namespace(namespace);
    filter.insert("name", name.as_str());
    filter
}

/// Adds how the entry stands to its history: in one stage all expressions see it as it was.
fn remember(fields: &mut Document) {
    let past: Document = PAST.iter().map(|f| ((*f).to_owned(), format!("${f}").into())).collect();
    let kept = doc! { "$cond": [{ "$isArray": "$history" }, "$history", []] };
    let longer = doc! { "$concatArrays": [kept, [past]] };
    let most = i32::try_from(Entry::HISTORY).unwrap_or(i32::MAX);
    fields.insert("history", doc! { "$slice": [longer, -most] });
}

/// Creates the entry if the upsert found none, and leaves one that is there as it is.
fn create(id: &Bson, fields: Document) -> Vec<Document> {
    let missing = doc! { "$eq": ["$$ROOT", literal(doc! { "_id": id.clone() })] };
    vec![doc! { "$replaceWith": { "$cond": [missing, fields, "$$ROOT"] } }]
}

fn claimed_fields(claim: &Claim) -> Document {
    let mut fields = doc! {
        "status": RUNNING,
        "direction": claim.direction.as_str(),
        "runId": literal(claim.identity.run_id.as_str()),
        "startedAt": NOW,
        "executedBy": literal(&claim.identity.user),
        "host": literal(&claim.identity.host),
        "error": REMOVED,
        "reason": REMOVED,
    };
    match claim.direction {
        // What was applied, and when, is still true until the `down` is done.
        Direction::Down => {}
        Direction::Up => {
            if let Some(batch) = claim.batch {
                fields.insert("batch", literal(number(batch)));
            }
            fields.insert("checksum", literal_or_removed(claim.checksum.as_deref()));
            fields.insert("environment", literal(&claim.environment));
            fields.insert("description", literal_or_removed(claim.description.as_deref()));
            fields.insert("service", literal_or_removed(claim.service.as_deref()));
            // An imported entry whose `up` runs here is imported no more.
            fields.insert("origin", REMOVED);
        }
    }
    fields
}

fn marked_fields(mark: &Mark) -> Document {
    let mut fields = doc! {
        "status": literal(mark.verdict.status().as_str()),
        "runId": literal(mark.identity.run_id.as_str()),
        "executedBy": literal(&mark.identity.user),
        "host": literal(&mark.identity.host),
        "error": REMOVED,
        "reason": literal_or_removed(mark.reason.as_deref()),
    };
    match &mark.verdict {
        Verdict::Applied { batch, checksum } => fields.extend(doc! {
            "batch": literal(number(*batch)),
            "checksum": literal(checksum),
            "environment": literal(&mark.environment),
            "service": literal_or_removed(mark.service.as_deref()),
            "appliedAt": NOW,
            "revertedAt": REMOVED,
            "duration": literal(0),
            "origin": MARKED,
        }),
        Verdict::Accepted { checksum } => drop(fields.insert("checksum", literal(checksum))),
        Verdict::Reverted => drop(fields.insert("revertedAt", NOW)),
    }
    fields
}

fn adopted_fields(adoption: &Adoption) -> Document {
    doc! {
        "status": Status::Applied.as_str(),
        "direction": Direction::Up.as_str(),
        "runId": literal(adoption.identity.run_id.as_str()),
        "batch": literal(number(adoption.batch)),
        "appliedAt": adoption.applied_at.map_or_else(
            || NOW.into(),
            |ms| Bson::Document(literal(DateTime::from_millis(ms))),
        ),
        "duration": literal(0),
        "checksum": literal(&adoption.checksum),
        "environment": IMPORTED,
        "executedBy": ADOPTER,
        "origin": literal(adoption.origin),
    }
}

fn settled_fields(outcome: &Outcome) -> (&'static str, Document) {
    match outcome {
        Outcome::Applied { duration_ms } => (
            "applied",
            doc! {
                "appliedAt": NOW,
                "duration": duration_ms.map_or_else(elapsed, |ms| literal(number(ms))),
                "revertedAt": REMOVED,
                "error": REMOVED,
            },
        ),
        Outcome::Reverted => ("reverted", doc! { "revertedAt": NOW, "error": REMOVED }),
        Outcome::UpFailed(error) => ("failed", doc! { "error": thrown(error) }),
        Outcome::DownFailed(error) => ("applied", doc! { "error": thrown(error) }),
    }
}

fn thrown(error: &EntryError) -> Document {
    literal(doc! { "name": &error.name, "message": &error.message })
}

/// How long the body has run, by the server's clock.
fn elapsed() -> Document {
    let began = doc! { "$eq": [{ "$type": "$startedAt" }, "date"] };
    doc! { "$cond": [began, { "$subtract": [NOW, "$startedAt"] }, Bson::Null] }
}

pub(super) fn next_version() -> Document {
    doc! { "$add": [{ "$ifNull": ["$version", 0] }, 1] }
}

pub(super) fn literal(value: impl Into<Bson>) -> Document {
    doc! { "$literal": value.into() }
}

fn literal_or_removed(value: Option<&str>) -> Bson {
    value.map_or_else(|| REMOVED.into(), |value| Bson::Document(literal(value)))
}

/// As small as it fits, so that a batch of ours has the type of a batch of 1.x.
fn number(value: i64) -> Bson {
    i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32)
}

pub(super) fn key_of(id: &Bson) -> EntryKey {
    // An `_id` that JSON can't carry would need a key that is no text; MongoDB has none.
    EntryKey(serde_json::to_string(id).unwrap_or_default())
}

/// A key that is none of ours becomes an `_id` that no entry has: a conflict, like any other.
fn id_of(key: &EntryKey) -> Bson {
    serde_json::from_str(&key.0).unwrap_or_else(|_| Bson::String(key.0.clone()))
}

fn text(value: RawBsonRef<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn instant(value: RawBsonRef<'_>) -> Option<i64> {
    value.as_datetime().map(|instant| instant.timestamp_millis())
}

fn integer(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(number) => Some(i64::from(number)),
        RawBsonRef::Int64(number) => Some(number),
        // A fraction of a millisecond is nobody's concern; out of range saturates.
        RawBsonRef::Double(number) => Some(number.round() as i64),
        _ => None,
    }
}

/// What 1.x stores as the environment of an imported entry.
const IMPORTED: &str = "imported";
const NOW: &str = "$$NOW";
pub(super) const REMOVED: &str = "$$REMOVE";
const RUNNING: &str = "running";
const FIRST_VERSION: i64 = 1;

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

#[cfg(test)]
mod tests {
    use mongodb::bson::oid::ObjectId;
    use mongodb::bson::{Binary, DateTime, rawdoc, spec::BinarySubtype};

    use super::*;

    #[test]
    fn a_key_leads_back_to_the_id_it_was_made_of() {
        let uuid = Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] };
        for id in [
            Bson::ObjectId(ObjectId::new()),
            Bson::String("/0001-a.js".to_owned()),
            Bson::String("{\"$oid\": 1}".to_owned()),
            Bson::Int32(7),
            Bson::Int64(i64::MAX),
            Bson::Double(0.5),
            Bson::DateTime(DateTime::from_millis(1_800_000_000_001)),
            Bson::Binary(uuid),
            Bson::Document(doc! { "file": "a.js", "n": 1 }),
        ] {
            let back = id_of(&key_of(&id));
            match (&id, &back) {
                // Numbers compare by value on the server, whatever their width.
                (Bson::Int32(number), Bson::Int64(same)) => assert_eq!(i64::from(*number), *same),
                _ => assert_eq!(back, id),
            }
        }
    }

    #[test]
    fn an_odd_entry_is_read_as_far_as_it_can_be() {
        let read = entry(&rawdoc! {
            "_id": 7, "name": 12, "status": true, "appliedAt": "yesterday", "batch": 2.0,
            "duration": 3.6, "error": "oops", "checksum": RawBsonRef::Null,
        });
        assert_eq!(read.name, "");
        assert_eq!(read.status, Status::Other(String::new()));
        assert_eq!((read.applied_at, read.batch, read.duration_ms), (None, Some(2), Some(4)));
        assert_eq!((read.error, read.checksum), (None, None));
    }
}

//! Reads entries as they lie in MongoDB, and names them. Pure values, no I/O.
//!
//! Fields keep the names and types that 1.x reads. An entry that we create has an `_id` made of
//! namespace and name; entries by 1.x keep their ObjectId.

use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, doc};

use super::entry::{Entry, EntryError, EntryKey, PastState, Status};
use crate::lock::lease::RunId;
use crate::migration::{Direction, MigrationName, Namespace};

/// The entries of one namespace.
pub(super) fn of_namespace(namespace: &Namespace) -> Document {
    // Null finds missing fields too, which is what the default namespace is.
    doc! { "namespace": namespace.name() }
}

/// The entries of one migration.
pub(super) fn named(name: &MigrationName, namespace: &Namespace) -> Document {
    let mut filter = of_namespace(namespace);
    filter.insert("name", name.as_str());
    filter
}

/// The `_id` of an entry that we create. A name holds no `/`, so no two pairs share one.
pub(super) fn created_id(name: &MigrationName, namespace: &Namespace) -> Bson {
    text_id(name.as_str(), namespace)
}

/// The `_id` that belongs to a name as it is stored.
pub(super) fn text_id(name: &str, namespace: &Namespace) -> Bson {
    Bson::String(format!("{}/{name}", namespace.name().unwrap_or_default()))
}

/// How the rest of the core refers to an `_id`.
pub(super) fn key_of(id: &Bson) -> EntryKey {
    // An `_id` that JSON can't carry would need a key that is no text; MongoDB has none.
    EntryKey(serde_json::to_string(id).unwrap_or_default())
}

/// A key that is none of ours becomes an `_id` that no entry has: a conflict, like any other.
pub(super) fn id_of(key: &EntryKey) -> Bson {
    serde_json::from_str(&key.0).unwrap_or_else(|_| Bson::String(key.0.clone()))
}

/// Reads an entry, whoever wrote it. In one pass and without a copy of the document: a boot does
/// this for every migration there ever was.
pub(super) fn entry(document: &RawDocument) -> Entry {
    let mut entry = Entry::blank(key_of(&Bson::Null));
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

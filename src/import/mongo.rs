//! Documents of other tools as they lie in MongoDB. Read only.

use futures_util::{StreamExt, TryStreamExt};
use mongodb::Database;
use mongodb::action::Find;
use mongodb::bson::{Bson, DateTime, Document, doc};

use super::source::{Source, SourceDocument, Value};
use super::tool::Tool;
use crate::changelog::store::Lookout;
use crate::connect::fault_of;
use crate::fault::{FaultKind, StoreFault};

/// A collection with all its documents; nothing if there is no such collection.
pub(crate) async fn all_of(
    database: &Database,
    collection: &str,
) -> Result<Vec<Source>, StoreFault> {
    let mut sources = Vec::new();
    for name in names(database, doc! { "name": collection }).await? {
        sources.push(whole(database, name).await?);
    }
    Ok(sources)
}

/// What may be changelogs of other tools, in any collection but those of ours.
///
/// Who may not list collections is shown those in the usual places that he may read; the others are as
/// good as none.
pub(crate) async fn elsewhere(database: &Database, ours: &str) -> Result<Vec<Source>, StoreFault> {
    let (usual, mut others) = (Tool::collections(), Vec::new());
    let mut sources = Vec::new();
    // A view can be anything, and take its time; a view in a usual place is meant.
    let any = doc! { "$or": [{ "type": "collection" }, { "name": { "$in": &usual } }] };
    let names = match names(database, any).await {
        // Types are for those who may list collections; names of what they may read are for all.
        Err(fault) if fault.kind == FaultKind::Unauthorized => {
            names(database, doc! { "name": { "$in": &usual } }).await?
        }
        names => names?,
    };
    for name in names {
        if name == ours || name.starts_with("system.") || name.starts_with("_mmk_") {
            continue;
        }
        if usual.contains(&name.as_str()) {
            sources.push(whole(database, name).await?);
        } else {
            others.push(name);
        }
    }
    let looks = others.into_iter().map(|name| glance(database, name));
    let glances = futures_util::stream::iter(looks).buffered(AT_ONCE);
    sources.extend(glances.try_collect::<Vec<_>>().await?.into_iter().flatten());
    Ok(sources)
}

async fn names(database: &Database, filter: Document) -> Result<Vec<String>, StoreFault> {
    let names = database.list_collection_names().filter(filter).authorized_collections(true);
    names.await.map_err(|error| fault_of(&error))
}

async fn whole(database: &Database, collection: String) -> Result<Source, StoreFault> {
    let documents = documents(database.collection(&collection).find(Document::new())).await?;
    Ok(Source { collection, documents })
}

/// The documents of a collection, if the first has the shape of a tool's.
async fn glance(database: &Database, collection: String) -> Result<Option<Source>, StoreFault> {
    let handle = database.collection::<Document>(&collection);
    let all = || handle.find(Document::new());
    let first = match documents(all().limit(1)).await {
        Ok(first) => first,
        // What we may not look at is not ours to judge.
        Err(fault) if fault.kind == FaultKind::Unauthorized => return Ok(None),
        Err(fault) => return Err(fault),
    };
    if Tool::detect(&first).is_empty() {
        return Ok(None);
    }
    let documents = documents(all().limit(GLANCE)).await?;
    Ok(Some(Source { collection, documents }))
}

async fn documents(query: Find<'_, Document>) -> Result<Vec<SourceDocument>, StoreFault> {
    let found = async { query.await?.try_collect::<Vec<Document>>().await }.await;
    Ok(found.map_err(|error| fault_of(&error))?.iter().map(source_document).collect())
}

fn source_document(document: &Document) -> SourceDocument {
    let fields = document.iter().map(|(name, found)| (name.clone(), value(found)));
    SourceDocument { fields: fields.collect() }
}

fn value(found: &Bson) -> Value {
    match found {
        Bson::String(text) => {
            let instant = DateTime::parse_rfc3339_str(text).ok();
            let instant = instant.map(DateTime::timestamp_millis);
            Value::Text { text: text.clone(), instant }
        }
        Bson::DateTime(instant) => Value::Instant(instant.timestamp_millis()),
        Bson::Int32(number) => Value::Number(i64::from(*number)),
        Bson::Int64(number) => Value::Number(*number),
        // A fraction of a millisecond is nobody's concern; out of range saturates.
        Bson::Double(number) => Value::Number(number.round() as i64),
        Bson::ObjectId(id) => {
            Value::ObjectId { hex: id.to_hex(), made_at: id.timestamp().timestamp_millis() }
        }
        Bson::Null | Bson::Undefined => Value::Null,
        Bson::Boolean(true) => Value::Other("true"),
        Bson::Boolean(false) => Value::Other("false"),
        Bson::Document(_) => Value::Other("a document"),
        Bson::Array(_) => Value::Other("an array"),
        _ => Value::Other("of another type"),
    }
}

/// As many collections are looked into at once.
const AT_ONCE: usize = 8;

/// [`Lookout::GLANCE`] as the driver takes it.
const GLANCE: i64 = Lookout::GLANCE as i64;

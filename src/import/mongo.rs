//! Documents of other tools as they lie in MongoDB. Read only.

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::error::Error;
use mongodb::{Collection, Database};

use super::source::{Source, SourceDocument, Value};
use crate::connect::fault_of;
use crate::fault::StoreFault;

/// Those of these collections that there are.
///
/// Who may not list collections is shown those that he may read; the others are as good as none.
pub(crate) async fn sources(
    database: &Database,
    among: &[&str],
) -> Result<Vec<Source>, StoreFault> {
    let names = database
        .list_collection_names()
        .filter(doc! { "name": { "$in": among } })
        .authorized_collections(true)
        .await
        .map_err(|error| fault_of(&error))?;
    let mut sources = Vec::new();
    for collection in names {
        let documents = documents(&database.collection(&collection)).await;
        let documents = documents.map_err(|error| fault_of(&error))?;
        sources.push(Source { collection, documents });
    }
    Ok(sources)
}

async fn documents(collection: &Collection<Document>) -> Result<Vec<SourceDocument>, Error> {
    let documents: Vec<Document> = collection.find(Document::new()).await?.try_collect().await?;
    Ok(documents.iter().map(source_document).collect())
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

//! Names that a MongoDB collection can't hold twice: 1.x puts a unique index on the bare name.
//!
//! Two reads, and the second only if another namespace has one of the names: most collections serve
//! one namespace. An index whose filter leaves some entries out is not judged: what it refuses is
//! found out by the write.

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};
use mongodb::{Collection, IndexModel};

use super::store::NameIndex;
use crate::connect::fault_of;
use crate::fault::StoreFault;
use crate::migration::{MigrationName, Namespace};

/// The index that keeps entries of these names out of the namespace, if there is one.
pub(super) async fn index_in_the_way(
    collection: &Collection<Document>,
    namespace: &Namespace,
    wanted: &[&MigrationName],
) -> Result<Option<NameIndex>, StoreFault> {
    let names = taken_elsewhere(collection, namespace, wanted).await?;
    if names.is_empty() {
        return Ok(None);
    }
    let indexes = collection.list_indexes().await.map_err(|error| fault_of(&error))?;
    let indexes: Vec<IndexModel> = indexes.try_collect().await.map_err(|error| fault_of(&error))?;
    let index = indexes.iter().find_map(unique_on_the_name);
    Ok(index.map(|index| NameIndex { index, names }))
}

/// Those of these names that entries of other namespaces have, each once.
async fn taken_elsewhere(
    collection: &Collection<Document>,
    namespace: &Namespace,
    wanted: &[&MigrationName],
) -> Result<Vec<String>, StoreFault> {
    let wanted: Vec<&str> = wanted.iter().map(|name| name.as_str()).collect();
    // The default namespace is a missing field, and "not null" is "not missing".
    let elsewhere = doc! { "name": { "$in": wanted }, "namespace": { "$ne": namespace.name() } };
    let only_the_name = doc! { "_id": 0, "name": 1 };
    let found = collection.find(elsewhere).projection(only_the_name).sort(doc! { "name": 1 });
    let found = found.await.map_err(|error| fault_of(&error))?;
    let found: Vec<Document> = found.try_collect().await.map_err(|error| fault_of(&error))?;
    let names = found.iter().filter_map(|entry| entry.get_str("name").ok());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.dedup();
    Ok(names)
}

fn unique_on_the_name(index: &IndexModel) -> Option<String> {
    let options = index.options.as_ref()?;
    let unconditional = options.unique == Some(true) && options.partial_filter_expression.is_none();
    let on_the_name = index.keys.len() == 1
        && index.keys.get("name").is_some_and(|order| !matches!(order, Bson::String(_)));
    if unconditional && on_the_name { options.name.clone() } else { None }
}

//! What dead runs left running on a MongoDB server, found by the `appName` of their connections.
//!
//! Everything here is allowed to any user for operations of that same user, and blind for others'.
//! Some hosted servers refuse it altogether.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Binary, Bson, Document, Uuid, doc};
use mongodb::error::Error;
use mongodb::options::ReadConcern;

use super::lease::RunId;
use super::orphans::{Operation, Orphans};
use crate::connect::{fault_of, no_reply};
use crate::fault::{FaultKind, StoreFault};

/// The operations that can be seen from one database.
#[derive(Debug, Clone)]
pub struct MongoOrphans {
    database: Database,
}

impl MongoOrphans {
    /// Operations on the server of this database, and index builds in it.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    fn admin(&self) -> Database {
        self.database.client().database("admin")
    }

    async fn operations(&self, run: &RunId) -> Result<Vec<Operation>, Error> {
        let current = doc! { "$currentOp": { "allUsers": false, "idleSessions": true } };
        let orphaned = doc! { "$match": {
            "appName": run.app_name(),
            "$or": [{ "active": true }, { "transaction": { "$exists": true } }],
            // A driver watches its servers over connections that carry the name as well.
            "command.hello": { "$exists": false },
            "command.isMaster": { "$exists": false },
            "command.ismaster": { "$exists": false },
        } };
        let admin = self.admin();
        // The stage knows no other read concern, and the connection's default is majority.
        let command = admin.aggregate([current, orphaned]).read_concern(ReadConcern::local());
        let found = command.max_time(PATIENCE).await?;
        let found: Vec<Document> = found.try_collect().await?;
        Ok(found.iter().filter_map(operation).collect())
    }

    async fn unfinished(&self) -> Result<Vec<String>, Error> {
        let collections = self.database.list_collections().filter(doc! { "type": "collection" });
        let collections: Vec<_> = collections.await?.try_collect().await?;
        let names: BTreeSet<String> = collections.into_iter().map(|found| found.name).collect();
        let mut unfinished = Vec::new();
        for name in names {
            let listing = doc! { "listIndexes": &name, "includeBuildUUIDs": true };
            // A collection that has been dropped meanwhile has no index to report.
            let Ok(reply) = self.database.run_command(listing).await else { continue };
            let batch =
                reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
            let building = batch.map(Vec::as_slice).unwrap_or_default().iter();
            let building = building.filter_map(Bson::as_document).filter_map(index_in_progress);
            unfinished.extend(building.map(|index| format!("{name}.{index}")));
        }
        Ok(unfinished)
    }
}

impl Orphans for MongoOrphans {
    async fn find(&self, run: &RunId) -> Result<Vec<Operation>, StoreFault> {
        answered(self.operations(run)).await
    }

    async fn stop(&self, operation: &Operation) -> Result<(), StoreFault> {
        let command = match Handle::from_text(&operation.handle) {
            Some(Handle::Operation(id)) => doc! { "killOp": 1, "op": id },
            // Never an empty list: that would end every session of the user.
            Some(Handle::Session(id)) => doc! { "killSessions": [{ "id": id }] },
            None => {
                let message = format!("{} names no operation", operation.handle);
                return Err(StoreFault::new(FaultKind::Rejected, message));
            }
        };
        let admin = self.admin();
        answered(async { admin.run_command(command).await.map(drop) }).await
    }

    async fn unfinished_indexes(&self) -> Result<Vec<String>, StoreFault> {
        answered(self.unfinished()).await
    }
}

async fn answered<T>(
    command: impl Future<Output = Result<T, Error>> + Send,
) -> Result<T, StoreFault> {
    match tokio::time::timeout(PATIENCE, command).await {
        Ok(reply) => reply.map_err(|error| fault_of(&error)),
        Err(_) => Err(no_reply(PATIENCE)),
    }
}

/// What the server knows an operation by.
enum Handle {
    /// A number, or `shard:number` behind a router.
    Operation(Bson),
    /// A session with an open transaction and nothing to do.
    Session(Binary),
}

impl Handle {
    fn of(found: &Document) -> Option<Self> {
        if let Some(id) = found.get("opid") {
            return Some(Self::Operation(id.clone()));
        }
        let session = found.get_document("lsid").ok()?;
        match session.get("id")? {
            Bson::Binary(id) => Some(Self::Session(id.clone())),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let (kind, id) = text.split_once(' ')?;
        match kind {
            "op" => Some(Self::Operation(id.parse::<i64>().map_or_else(|_| id.into(), Bson::from))),
            "session" => Some(Self::Session(Binary::from(Uuid::parse_str(id).ok()?))),
            _ => None,
        }
    }

    fn to_text(&self) -> Option<String> {
        match self {
            Self::Operation(Bson::Int32(id)) => Some(format!("op {id}")),
            Self::Operation(Bson::Int64(id)) => Some(format!("op {id}")),
            Self::Operation(Bson::String(id)) => Some(format!("op {id}")),
            Self::Operation(_) => None,
            Self::Session(id) => Some(format!("session {}", id.to_uuid().ok()?)),
        }
    }
}

fn operation(found: &Document) -> Option<Operation> {
    let handle = Handle::of(found)?;
    let description = match handle {
        Handle::Operation(_) => described(found),
        Handle::Session(_) => "open transaction".to_owned(),
    };
    Some(Operation { handle: handle.to_text()?, description })
}

/// `update shop.orders`: what is done and where, without any of the values.
fn described(found: &Document) -> String {
    let kind = found.get_str("op").unwrap_or("operation");
    let command = ["originatingCommand", "command"].into_iter().find_map(|field| {
        let command = found.get_document("cursor").and_then(|cursor| cursor.get_document(field));
        command.or_else(|_| found.get_document(field)).ok()
    });
    // The statements of an update or a delete come without the command's name.
    let kind = match (kind, command.and_then(|command| command.keys().next())) {
        ("command" | "query" | "getmore", Some(name)) => name.as_str(),
        (kind, _) => kind,
    };
    match found.get_str("ns") {
        Ok(place) if !place.is_empty() => format!("{kind} {place}"),
        Ok(_) | Err(_) => kind.to_owned(),
    }
}

fn index_in_progress(index: &Document) -> Option<&str> {
    index.get("buildUUID")?;
    index.get_document("spec").unwrap_or(index).get_str("name").ok()
}

/// A look is worth a few seconds; the caller looks again.
const PATIENCE: Duration = Duration::from_secs(5);

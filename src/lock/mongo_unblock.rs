//! Ends what a dead holder's arm has left open.
//!
//! An arm writes the lock document in a transaction. A process that is killed before the commit
//! leaves that transaction open on the server, which ends it only after a minute; until then every
//! write to the document waits behind it. Reads don't: what they show is the lease as it was.

use futures_util::TryStreamExt;
use mongodb::action::Action;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReadConcern;

use super::lease::RunId;
use super::mongo::{Failure, MongoLockStore};
use super::mongo_pipeline::LOCK_ID;
use super::mongo_reading::shown;

/// Whose transactions may be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Only a holder whose lease is over: its arm would come too late.
    TheDead,
    /// Whoever holds the lock: an operator has decided that he does no longer.
    Anyone,
}

/// Ends the open transactions of the holder's lock connection. It finds those of the same user only,
/// and does what it can: a failure leaves things as they were.
pub(super) async fn end_transactions(store: &MongoLockStore, of: Of) -> Result<(), Failure> {
    let query = |view| async {
        let query = store.collection.find_one(doc! { "_id": LOCK_ID });
        let query = query.max_time(store.patience());
        query.optional(view, |query, view| query.projection(view)).await
    };
    let Some((holder, _)) = shown(store, query).await? else { return Ok(()) };
    let over = holder.expired;
    let Some(run) = holder.run_id.filter(|_| over || of == Of::Anyone) else { return Ok(()) };
    let admin = store.collection.client().database("admin");
    let current = doc! { "$currentOp": { "allUsers": false, "idleSessions": true } };
    let open = doc! { "$match": {
        "appName": RunId::from_text(run).lock_app_name(),
        "type": "idleSession",
        "transaction": { "$exists": true },
    } };
    // The stage knows no other read concern, and the connection's default is majority.
    let looking = admin.aggregate([current, open]).read_concern(ReadConcern::local());
    let sessions: Vec<Document> = looking.max_time(store.patience()).await?.try_collect().await?;
    let sessions: Vec<Bson> = sessions.iter().filter_map(session).collect();
    // An empty list would end every session of the user.
    if !sessions.is_empty() {
        admin.run_command(doc! { "killSessions": sessions }).await?;
    }
    Ok(())
}

fn session(found: &Document) -> Option<Bson> {
    let id = found.get_document("lsid").ok()?.get("id")?.clone();
    Some(Bson::Document(doc! { "id": id }))
}

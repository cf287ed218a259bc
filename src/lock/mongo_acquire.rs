//! One acquire: a single command where the server judges, a few conditional ones where it does not.

use mongodb::action::Action;
use mongodb::bson::{Document, doc};
use mongodb::options::ReturnDocument;

use super::document;
use super::lease::Holder;
use super::mongo::{BLOCKED_PATIENCE, Failure, MongoLockStore, ours};
use super::mongo_operators as operators;
use super::mongo_pipeline::{self as pipeline, LOCK_ID};
use super::mongo_reading as reading;
use super::rules::Judgement;
use super::store::{AcquireReply, Attempt};
use crate::connect::fault_of;
use crate::fault::{FaultKind, StoreFault};

/// Asks for the lock. It is ours exactly if the document as it is then names our owner token.
pub(super) async fn acquire(
    store: &MongoLockStore,
    attempt: &Attempt,
) -> Result<AcquireReply, Failure> {
    let (found, lock) = if store.form.is_operators() {
        by_operators(store, attempt).await?
    } else {
        by_pipeline(store, attempt).await?
    };
    if found.owner.as_deref() != Some(attempt.owner.as_str()) {
        return Ok(AcquireReply::Held(found));
    }
    let previous = lock.get_document("prev").ok();
    let took_over_from = previous.map(|previous| document::previous(previous, found.now));
    let election_moved = took_over_from.is_some() && has_moved_since(store, &lock).await?;
    Ok(AcquireReply::Acquired { took_over_from, election_moved })
}

/// Who holds the lock afterwards, and its document.
type Afterwards = (Holder, Document);

async fn by_pipeline(store: &MongoLockStore, attempt: &Attempt) -> Result<Afterwards, Failure> {
    let election = store.hello().await?.election;
    let command = |view| {
        let pipeline = pipeline::acquire(attempt, election);
        let command = store.collection.find_one_and_update(doc! { "_id": LOCK_ID }, pipeline);
        let command = command.upsert(true).return_document(ReturnDocument::After);
        let command = command.max_time(store.patience().min(BLOCKED_PATIENCE));
        let command = command.write_concern(store.write_concern());
        async { command.optional(view, |command, view| command.projection(view)).await }
    };
    let lock = reading::shown(store, command).await?;
    lock.ok_or_else(|| puzzling("the server upserted nothing"))
}

/// Looks, decides, and writes on the condition that nothing has changed; what misses is judged anew.
///
/// The look is a write already, which leaves ours where nothing is: like the acquire of the other form
/// it sees the newest document, and waits until a majority has it.
async fn by_operators(store: &MongoLockStore, attempt: &Attempt) -> Result<Afterwards, Failure> {
    for _ in 0..TRIES {
        let moment = store.moment().await?;
        let legacy_ttl = attempt.timing.legacy_ttl();
        let shown = |lock| (document::holder(&lock, legacy_ttl, moment.now), lock);
        let lease = operators::lease(attempt, moment);
        let Some(found) = insert(store, &lease).await? else { return Ok(shown(lease)) };
        let taken = match operators::judged(&found, attempt, moment) {
            Judgement::Held => return Ok(shown(found)),
            Judgement::Ours => {
                let prolonging = operators::prolong(&attempt.owner, attempt.timing, moment);
                prolong(store, ours(&attempt.owner), prolonging).await?
            }
            Judgement::Over => {
                let lease = operators::taken(lease, &found);
                replace(store, operators::unchanged(&found), lease).await?
            }
        };
        if let Some(lock) = taken {
            return Ok(shown(lock));
        }
    }
    Err(puzzling("the lock changed again and again while it was being taken"))
}

/// Writes a lease where there is no document; otherwise returns what is there.
async fn insert(store: &MongoLockStore, lease: &Document) -> Result<Option<Document>, Failure> {
    let found = store
        .collection
        .find_one_and_update(doc! { "_id": LOCK_ID }, doc! { "$setOnInsert": lease })
        .upsert(true)
        .return_document(ReturnDocument::Before)
        .max_time(store.patience().min(BLOCKED_PATIENCE))
        .write_concern(store.write_concern());
    Ok(found.await?)
}

async fn prolong(
    store: &MongoLockStore,
    ours: Document,
    prolonging: Document,
) -> Result<Option<Document>, Failure> {
    let prolonged = store
        .collection
        .find_one_and_update(ours, prolonging)
        .return_document(ReturnDocument::After)
        .max_time(store.patience().min(BLOCKED_PATIENCE))
        .write_concern(store.write_concern());
    Ok(prolonged.await?)
}

async fn replace(
    store: &MongoLockStore,
    unchanged: Document,
    lease: Document,
) -> Result<Option<Document>, Failure> {
    let replaced = store
        .collection
        .find_one_and_replace(unchanged, lease)
        .return_document(ReturnDocument::After)
        .max_time(store.patience().min(BLOCKED_PATIENCE))
        .write_concern(store.write_concern());
    Ok(replaced.await?)
}

/// Was there an election since shortly before this lease was won?
async fn has_moved_since(store: &MongoLockStore, lock: &Document) -> Result<bool, Failure> {
    // The lock is ours by now, so a refusal to answer refuses nothing.
    let now = store.hello().await.map_err(|error| Failure::Unknown(fault_of(&error)))?;
    Ok(now.election != lock.get_object_id("electionId").ok())
}

fn puzzling(message: &str) -> Failure {
    Failure::Unknown(StoreFault::new(FaultKind::Rejected, message))
}

/// How often what was found is judged before the acquire leaves it to the next one. A miss means that
/// somebody else has written, and most of what can be written makes the lock held.
const TRIES: u32 = 5;

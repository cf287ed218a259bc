//! The fence in a MongoDB collection: a document beside the lock that outlives every lease.
//!
//! It is a document of its own because bodies' transactions write to it: on the lock document they
//! would collide with their own holder's renewals.

use std::time::Duration;

use mongodb::ClientSession;
use mongodb::bson::{Bson, doc};
use mongodb::error::{Error, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use mongodb::options::{ReturnDocument, UpdateModifications};

use super::document::integer;
use super::lease::{OwnerToken, RunId};
use super::mongo::{Failure, MongoLockStore, moment_of, ours};
use super::mongo_register::{self as register, FENCE_ID, unsettled_run};
use super::store::{Arming, UnsettledRun};
use crate::connect::Hello;
use crate::fault::{FaultKind, StoreFault};
use crate::mutant::Mutant;

/// Raises the fence and prolongs the lease, or finds the lease gone (`None`).
///
/// With transactions both happen or neither does, and an arm that comes too late leaves a later
/// holder's token alone. A standalone has none: there the token rises first, and the renewal that
/// follows finds out whether it was still ours to raise. Nothing on a standalone is fenced by it.
pub(super) async fn arm(
    store: &MongoLockStore,
    owner: &OwnerToken,
    arming: &Arming,
) -> Result<Option<i64>, Failure> {
    let hello = store.answered(async { Ok(store.hello().await?) }).await?;
    if !hello.transactions {
        return store.answered(arm_in_turn(store, owner, arming, &hello)).await;
    }
    let starting = async { Ok(store.collection.client().start_session().await?) };
    let mut session = store.answered(starting).await?;
    let arming = arm_at_once(store, owner, arming, &hello, &mut session);
    let armed = store.answered(arming).await;
    if armed.is_err() {
        end(store, &mut session).await;
    }
    armed
}

async fn arm_in_turn(
    store: &MongoLockStore,
    owner: &OwnerToken,
    arming: &Arming,
    hello: &Hello,
) -> Result<Option<i64>, Failure> {
    let token = raise(store, owner, arming, hello, None).await?;
    let lease = store
        .collection
        .find_one_and_update(ours(owner), store.renewal(owner, hello, Some(token))?)
        .projection(doc! { "_id": 1 })
        .write_concern(store.write_concern());
    Ok(lease.await?.map(|_| token))
}

async fn arm_at_once(
    store: &MongoLockStore,
    owner: &OwnerToken,
    arming: &Arming,
    hello: &Hello,
    session: &mut ClientSession,
) -> Result<Option<i64>, Failure> {
    session.start_transaction().write_concern(store.write_concern()).await?;
    let lease = store
        .collection
        .find_one_and_update(ours(owner), store.renewal(owner, hello, None)?)
        .projection(doc! { "_id": 1 })
        .max_time(store.patience())
        .session(&mut *session);
    if lease.await?.is_none() {
        // Nothing was written that would have to be taken back.
        let _ = session.abort_transaction().await;
        return Ok(None);
    }
    let token = raise(store, owner, arming, hello, Some(&mut *session)).await?;
    let noting = doc! { "$set": { "fence": token } };
    store.collection.update_one(ours(owner), noting).session(&mut *session).await?;
    commit(session).await?;
    Ok(Some(token))
}

/// Takes back a transaction of which nobody knows how far it came: left open, it would keep our own
/// renewals from the lock document until the server's limit of a minute. One that is committed stays
/// committed.
async fn end(store: &MongoLockStore, session: &mut ClientSession) {
    let Some(id) = session.id().get("id").cloned() else { return };
    let ending = async {
        // The driver takes back only what it has not tried to commit, and keeps it to itself when the
        // server did not hear it.
        let _ = session.abort_transaction().await;
        let admin = store.collection.client().database("admin");
        let _ = admin.run_command(doc! { "killSessions": [{ "id": id }] }).await;
    };
    let _ = tokio::time::timeout(SETTLE_PATIENCE, ending).await;
}

/// The next token, with our run in the register and the settled ones off it.
async fn raise(
    store: &MongoLockStore,
    owner: &OwnerToken,
    arming: &Arming,
    hello: &Hello,
    mut session: Option<&mut ClientSession>,
) -> Result<i64, Failure> {
    let raised: UpdateModifications = if store.form.is_operators() {
        clear(store, arming, session.as_deref_mut()).await?;
        register::raised_plainly(owner, arming, moment_of(hello)?.now).into()
    } else {
        register::raised(owner, arming).into()
    };
    let command = store
        .collection
        .find_one_and_update(doc! { "_id": FENCE_ID }, raised)
        .upsert(true)
        .return_document(ReturnDocument::After)
        .projection(doc! { "token": 1 })
        .max_time(store.patience());
    let fence = match session {
        Some(session) => command.session(session).await?,
        None => command.write_concern(store.write_concern()).await?,
    };
    fence.as_ref().and_then(|fence| integer(fence, "token")).ok_or_else(|| {
        let message = "the fence came back without a token";
        Failure::Refused(StoreFault::new(FaultKind::Rejected, message))
    })
}

/// Takes runs off the register before one is added, where that takes commands of its own. Without a
/// transaction they are carried out whatever follows, which does no harm: those runs are settled, and
/// ours has not begun.
async fn clear(
    store: &MongoLockStore,
    arming: &Arming,
    mut session: Option<&mut ClientSession>,
) -> Result<(), Failure> {
    for (filter, update) in register::cleared(arming) {
        let command = store.collection.update_one(filter, update);
        match session.as_deref_mut() {
            Some(session) => command.session(session).await?,
            None => command.write_concern(store.write_concern()).await?,
        };
    }
    Ok(())
}

/// Commits. Until the outcome is known a commit may be sent again, and the server recognises it.
async fn commit(session: &mut ClientSession) -> Result<(), Error> {
    let mut tries = 1;
    loop {
        match session.commit_transaction().await {
            Err(error)
                if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT)
                    && tries < COMMIT_TRIES =>
            {
                tries += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Takes a run off the register. When that fails it stays on it, and the next run looks for what it
/// left and finds nothing: so the lock is not kept waiting for long.
pub(super) async fn settle(store: &MongoLockStore, run: &RunId) {
    // A transaction of a paused runner may hold the fence for as long as a minute.
    let patience = store.patience().min(SETTLE_PATIENCE);
    let off = doc! { "$pull": { "unsettled": { "runId": run.as_str() } } };
    let command = store
        .collection
        .find_one_and_update(doc! { "_id": FENCE_ID }, off)
        .projection(doc! { "_id": 1 })
        .max_time(patience)
        .write_concern(store.write_concern());
    let _ = tokio::time::timeout(patience, command.into_future()).await;
}

/// The register. Entries that nobody could have left running anything are passed over.
pub(super) async fn unsettled(store: &MongoLockStore) -> Result<Vec<UnsettledRun>, Failure> {
    let fence = store.collection.find_one(doc! { "_id": FENCE_ID }).await?.unwrap_or_default();
    let entries = fence.get_array("unsettled").map(Vec::as_slice).unwrap_or_default();
    Ok(entries.iter().filter_map(Bson::as_document).filter_map(unsettled_run).collect())
}

/// A real write: a read of the fence, or a write that changes nothing, would let a transaction commit
/// that has been overtaken.
pub(super) fn command(collection: &str, token: i64) -> Vec<u8> {
    let mut touch = doc! {
        "q": { "_id": FENCE_ID, "token": token },
        "u": { "$inc": { "touch": 1_i64 } },
        "multi": false,
    };
    if Mutant::NoopFence.is_planted() || Mutant::NoFence.is_planted() {
        touch.insert("u", doc! { "$unset": { "nothing": "" } });
    }
    if Mutant::NoFence.is_planted() {
        touch.insert("q", doc! { "_id": FENCE_ID });
    }
    let command = doc! { "update": collection, "updates": [touch] };
    command.to_vec().expect("texts, numbers and constants always have a binary form")
}

/// One for a lost reply and one for a change of primary.
const COMMIT_TRIES: u32 = 3;

/// Long enough for any healthy server.
const SETTLE_PATIENCE: Duration = Duration::from_secs(2);

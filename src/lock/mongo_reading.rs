//! Shows the lock to those who look at it, or remove it.
//!
//! A server that computes projections judges the lease as it shows it. Others refuse the question in
//! words of their own, so any refusal of it has the bare document asked for instead, and the time before
//! that: a lease that has just ended may still be shown as held. A write that was refused was not carried
//! out, so an acquire and a removal may be asked again as well.

use std::future::Future;

use mongodb::action::Action;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error;

use super::document::{self, Field, Fields, instant};
use super::lease::{Holder, OwnerToken};
use super::mongo::{BLOCKED_PATIENCE, Failure, MongoLockStore, ours};
use super::mongo_pipeline::{self as pipeline, LOCK_ID};
use crate::fault::{FaultKind, StoreFault};

impl Fields for Document {
    fn field(&self, name: &str) -> Field<'_> {
        match self.get(name) {
            None => Field::Missing,
            Some(Bson::String(text)) => Field::Text(text),
            Some(Bson::Int32(number)) => Field::Whole(i64::from(*number)),
            Some(Bson::Int64(number)) => Field::Whole(*number),
            Some(Bson::Double(number)) => Field::Fraction(*number),
            Some(Bson::Decimal128(number)) => {
                number.to_string().parse().map_or(Field::Other, Field::Fraction)
            }
            Some(Bson::DateTime(instant)) => Field::Instant(instant.timestamp_millis()),
            Some(_) => Field::Other,
        }
    }

    fn is_bare(&self) -> bool {
        self.keys().all(|field| field == "_id")
    }
}

/// Who holds the lock.
pub(super) async fn inspect(store: &MongoLockStore) -> Result<Option<Holder>, Failure> {
    let query = |view| async {
        let query = store.collection.find_one(doc! { "_id": LOCK_ID });
        query.optional(view, |query, view| query.projection(view)).await
    };
    Ok(shown(store, query).await?.map(|(holder, _)| holder))
}

/// Removes the lock if its owner is still the one that was shown, and returns what was removed.
pub(super) async fn remove(
    store: &MongoLockStore,
    owner: Option<&OwnerToken>,
) -> Result<Option<Holder>, Failure> {
    let still_shown = match owner {
        Some(owner) => ours(owner),
        // A list of texts is of both types.
        None => doc! { "_id": LOCK_ID, "$or": [
            { "owner": { "$not": { "$type": "string" } } }, { "owner": { "$type": "array" } },
        ] },
    };
    let removal = |view| {
        let removal = store.collection.find_one_and_delete(still_shown.clone());
        let removal = removal.max_time(BLOCKED_PATIENCE).write_concern(store.write_concern());
        async { removal.optional(view, |removal, view| removal.projection(view)).await }
    };
    Ok(shown(store, removal).await?.map(|(holder, _)| holder))
}

/// Carries a command out that brings a lock document, with the view as its projection where the server
/// computes one. Returns what it shows, and the document or its view.
pub(super) async fn shown<C>(
    store: &MongoLockStore,
    command: impl Fn(Option<Document>) -> C,
) -> Result<Option<(Holder, Document)>, Failure>
where
    C: Future<Output = Result<Option<Document>, Error>>,
{
    let legacy_ttl = store.timing.legacy_ttl();
    if !store.form.is_operators() {
        match command(Some(pipeline::view(legacy_ttl))).await.map_err(Failure::from) {
            Err(Failure::Refused(fault)) if may_be_of_the_view(&fault) => {}
            found => return Ok(found?.map(|view| (holder(&view), view))),
        }
    }
    let now = store.moment().await?.now;
    let found = command(None).await?;
    Ok(found.map(|lock| (document::holder(&lock, legacy_ttl, now), lock)))
}

/// Is it an answer, and not about who asks?
fn may_be_of_the_view(fault: &StoreFault) -> bool {
    fault.kind == FaultKind::Rejected
}

/// A holder as the server has judged it in a [`pipeline::view`].
fn holder(view: &Document) -> Holder {
    Holder {
        expires_at: instant(view, "endsAt"),
        now: instant(view, "now").unwrap_or_default(),
        expired: view.get_bool("over").unwrap_or_default(),
        ..document::stored(view)
    }
}

//! A change stream on the lock's collection, reduced to one question: has something of interest
//! happened?
//!
//! The server does the sorting out, so that a holder's renewals wake nobody.

use std::time::Duration;

use futures_util::StreamExt;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use mongodb::change_stream::ChangeStream;
use tokio::sync::mpsc;

use super::mongo::Failure;
use super::mongo_pipeline::LOCK_ID;
use super::store::{Interest, Wakes};

/// Opens a stream; what happens after this returns is heard of. It ends with its receiver, and the
/// channel with it: after a fault, and after the collection was dropped.
pub(super) async fn open(
    collection: &Collection<Document>,
    interest: &Interest,
) -> Result<Wakes, Failure> {
    let pipeline = [doc! { "$match": of_interest(interest) }];
    let stream = collection.watch().pipeline(pipeline).max_await_time(AWAIT).await?;
    let (wake, wakes) = mpsc::channel(1);
    tokio::spawn(listen(stream.with_type(), wake));
    Ok(wakes)
}

async fn listen(mut stream: ChangeStream<Document>, wake: mpsc::Sender<()>) {
    loop {
        tokio::select! {
            () = wake.closed() => return,
            event = stream.next() => match event {
                // A full channel is a wake that has not been heard yet.
                Some(Ok(_)) => { let _ = wake.try_send(()); }
                Some(Err(_)) | None => return,
            },
        }
    }
}

fn of_interest(interest: &Interest) -> Document {
    let gone = doc! { "operationType": {
        "$in": ["drop", "rename", "dropDatabase", "invalidate"],
    } };
    let deleted = doc! { "documentKey._id": LOCK_ID, "operationType": "delete" };
    let Interest::TakenFrom(owner) = interest else { return doc! { "$or": [gone, deleted] } };
    // 4.4 delivers a pipeline's update as `replace`, later servers as `update` unless they would have
    // to name too many fields.
    let replaced = doc! {
        "documentKey._id": LOCK_ID,
        "operationType": { "$in": ["insert", "replace"] },
        "fullDocument.owner": { "$ne": owner.as_str() },
    };
    let updated = doc! {
        "documentKey._id": LOCK_ID,
        "operationType": "update",
        "$or": [
            { "updateDescription.updatedFields.owner": { "$exists": true, "$ne": owner.as_str() } },
            { "updateDescription.removedFields": "owner" },
        ],
    };
    doc! { "$or": [gone, deleted, replaced, updated] }
}

/// How long the server holds a question that has no answer yet. Longer means fewer questions; a
/// receiver that goes away ends it anyway.
const AWAIT: Duration = Duration::from_secs(10);

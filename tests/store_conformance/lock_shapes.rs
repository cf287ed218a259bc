//! Which documents may be taken: ours, those of 1.x, and whatever else may lie there.

use std::time::Duration;

use mongo_migrate_kit::lock::store::{AcquireReply, LockStore};
use serde_json::{Value, json};

use crate::worlds::{LockWorld, attempt, timing};

on_every_store! {
    every_shape_is_judged_and_shown_alike,
    a_live_runner_of_1_3_that_inherited_a_past_expiry_keeps_its_lock,
}

enum Verdict {
    Free,
    Held,
}
use Verdict::{Free, Held};

/// Every date is relative to the server's clock: `past` is over for every rule, `recent` is within a
/// legacy TTL, `future` is yet to come. Leases of our kind were written under the primary of now.
fn shapes(now: i64, election: Option<&Value>) -> Vec<(&'static str, Value, Verdict)> {
    let past = json!({ "$date": now - 61_000 });
    let recent = json!({ "$date": now - 10_000 });
    let future = json!({ "$date": now + 60_000 });
    let endless = json!({ "$date": 9_000_000_000_000_000_000_i64 });
    let ours = |expires_at: &Value| json!({ "owner": "a", "leaseOwner": "a", "lockedAt": past, "expiresAt": expires_at, "electionId": election });
    let versioned = |v: Value| json!({ "v": v, "owner": "a", "leaseOwner": "a", "lockedAt": past, "expiresAt": past, "electionId": election });
    let owned = |owner: Value| json!({ "owner": owner, "leaseOwner": owner, "lockedAt": past, "expiresAt": past });
    let legacy = |locked_at: &Value| json!({ "owner": "a", "lockedAt": locked_at });
    let timed = |locked_at: &Value, expires_at: &Value| json!({ "owner": "a", "lockedAt": locked_at, "expiresAt": expires_at });
    let inherited = |locked_at: &Value| json!({ "owner": "b", "leaseOwner": "a", "lockedAt": locked_at, "expiresAt": past });
    vec![
        ("an empty document", json!({}), Free),
        ("a document about something else", json!({ "foo": 1 }), Held),
        ("ours, over", ours(&past), Free),
        ("ours, live", ours(&future), Held),
        ("ours without an end", json!({ "owner": "a", "leaseOwner": "a", "lockedAt": past }), Held),
        ("ours, ending in null", ours(&json!(null)), Held),
        ("ours, ending in a text", ours(&json!("2001-01-01")), Held),
        ("ours, ending in a number", ours(&json!(0)), Held),
        ("ours, ending in a list of dates", ours(&json!([past])), Held),
        ("ours of version 1, over", versioned(json!(1)), Free),
        ("ours of version 2.0, over", versioned(json!(2.0)), Free),
        ("ours of version 2.5, over", versioned(json!(2.5)), Held),
        ("ours of version 3, over", versioned(json!(3)), Held),
        ("ours of version \"2\", over", versioned(json!("2")), Held),
        ("ours of version null, over", versioned(json!(null)), Held),
        ("nobody's, over", json!({ "lockedAt": past, "expiresAt": past }), Held),
        ("null's, over", owned(json!(null)), Held),
        ("a number's, over", owned(json!(7)), Held),
        ("a list's, over", owned(json!(["a"])), Held),
        ("1.3's, silent for its TTL", legacy(&past), Free),
        ("1.3's, live", legacy(&recent), Held),
        ("1.3's, locked at a text", legacy(&json!("2001-01-01")), Held),
        ("1.3's, locked at null", legacy(&json!(null)), Held),
        ("1.3's, never locked", json!({ "owner": "a" }), Held),
        ("1.3's, locked in the future", legacy(&future), Held),
        ("1.3's, locked at the end of time", legacy(&endless), Held),
        ("1.5's, over", timed(&past, &past), Free),
        ("1.5's, live", timed(&recent, &future), Held),
        ("1.5's, silent but not over", timed(&past, &future), Held),
        ("1.5's, ending in null", timed(&past, &json!(null)), Held),
        ("1.5's, ending in a text", timed(&past, &json!("2001-01-01")), Held),
        ("1.3's after one of ours, live", inherited(&recent), Held),
        ("1.3's after one of ours, silent", inherited(&past), Free),
    ]
}

async fn every_shape_is_judged_and_shown_alike(world: &impl LockWorld) {
    let now = world.now().await;
    let election = world.election().await;
    for (name, document, verdict) in shapes(now, election.as_ref()) {
        world.plant(Some(document.clone())).await;
        let shown = world.lock().inspect().await.expect("a reply").expect("a holder");
        let attempt = attempt();
        let reply = world.lock().acquire(&attempt).await;
        match verdict {
            Free => {
                assert!(matches!(reply, AcquireReply::Acquired { .. }), "{name}: {reply:?}");
                assert!(shown.expired, "{name}: shown as held");
                let after = world.document().await.expect("a lock document");
                assert_eq!(after["owner"], json!(attempt.owner), "{name}");
            }
            Held => {
                assert!(matches!(reply, AcquireReply::Held(_)), "{name}: {reply:?}");
                assert!(!shown.expired, "{name}: shown as free");
                assert!(shown.expires_at.is_none_or(|end| end > shown.now), "{name}: {shown:?}");
                let after = world.document().await.map(Value::Object);
                assert_eq!(after, Some(document), "{name} was changed");
            }
        }
    }
}

async fn a_live_runner_of_1_3_that_inherited_a_past_expiry_keeps_its_lock(world: &impl LockWorld) {
    world.lock().acquire(&attempt()).await;
    world.age(timing().ttl() * 2).await;
    // What the update of 1.3 does: it sets its own fields and leaves the others.
    let mut document = world.document().await.expect("our lease");
    let now = world.now().await;
    for (field, value) in [
        ("owner", json!("1.3")),
        ("lockedAt", json!({ "$date": now })),
        ("pid", json!(1)),
        ("host", json!("old")),
        ("executedBy", json!("old")),
    ] {
        document.insert(field.to_owned(), value);
    }
    world.plant(Some(Value::Object(document))).await;

    let AcquireReply::Held(holder) = world.lock().acquire(&attempt()).await else {
        panic!("a live runner was robbed")
    };
    assert_eq!(holder.host.as_deref(), Some("old"));
    assert_eq!(holder.expires_at, Some(now + 60_000));

    world.age(Duration::from_secs(61)).await;
    let AcquireReply::Acquired { took_over_from, .. } = world.lock().acquire(&attempt()).await
    else {
        panic!("a silent runner of 1.3 is gone after its TTL")
    };
    assert_eq!(took_over_from.and_then(|holder| holder.owner).as_deref(), Some("1.3"));
}

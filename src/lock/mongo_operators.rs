//! The lock's writes in plain update operators, for servers that refuse pipelines: pure values, no I/O.
//!
//! Here the server judges nothing. Its document is read and judged by a [`Moment`], which is one reply
//! of the primary's: its clock, and the election that made it what it is. The write that follows names
//! what was read, and misses if it is so no longer.
//!
//! # Why a clock that was read a little too early is safe
//! A verb asks for the moment after it has begun and before it reads or writes the lock.
//! - *Taking over*: what was over then is over now. A holder that renewed in between has moved the
//!   document, and the write misses.
//! - *Holding*: a lease ends a TTL after the moment, and the moment came after the holder's own clock
//!   had been read for the trust window. So the lease still outlives the trust, by a twentieth of the
//!   TTL and more; written too short by a moment, it costs the holder nothing.
//!
//! # An election between the moment and the write
//! Clock and election come from one reply, so a lease always says under which primary its dates were
//! told. Written under a new primary by the clock of the old one, it names the old one's election, and a
//! successor doubts its end until it has stood still. A lease that was read from the new primary and
//! judged by the old one's moment is taken over at once only if it names the old one's election: then
//! that was the clock which its holder had met. Whether the primary has changed is asked once more
//! after the write, as in the other form.
//!
//! # What it does not promise
//! That an empty document, which counts as missing, has stayed so: its write asks for the absence of
//! the fields by which a lock is judged, because operators can't ask for the absence of all.

use mongodb::bson::{Bson, DateTime, Document, doc, oid::ObjectId};

use super::document::{self, Fact, REMEMBERED, ms};
use super::lease::OwnerToken;
use super::mongo_pipeline::LOCK_ID;
use super::rules::Judgement;
use super::store::Attempt;
use super::timing::Timing;
use crate::connect::Hello;

/// By whose clock, and under which election, a lock is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Milliseconds since 1970.
    pub(super) now: i64,
    pub(super) election: Option<ObjectId>,
}

impl Moment {
    /// Nothing if the server keeps its clock to itself.
    pub(super) fn of(hello: &Hello) -> Option<Self> {
        Some(Self { now: hello.now?, election: hello.election })
    }

    fn end(self, timing: Timing) -> DateTime {
        DateTime::from_millis(self.now.saturating_add(ms(timing.ttl())))
    }
}

/// Whose the lock is.
pub(super) fn judged(found: &Document, attempt: &Attempt, moment: Moment) -> Judgement {
    let same_election = found.get_object_id("electionId").ok() == moment.election;
    document::judged(found, attempt, moment.now, same_election)
}

/// A new lease.
pub(super) fn lease(attempt: &Attempt, moment: Moment) -> Document {
    let value = |fact| match fact {
        Fact::Text(text) => Bson::from(text),
        Fact::Int(number) => Bson::from(number),
        Fact::Long(number) => Bson::from(number),
        Fact::Now => DateTime::from_millis(moment.now).into(),
        Fact::End => moment.end(attempt.timing).into(),
    };
    let facts = document::lease(attempt).into_iter();
    let mut lease: Document = facts.map(|(field, fact)| (field.to_owned(), value(fact))).collect();
    if let Some(election) = moment.election {
        lease.insert("electionId", election);
    }
    lease
}

/// The lease in place of another one, or of an empty document.
pub(super) fn taken(mut lease: Document, found: &Document) -> Document {
    let kept = REMEMBERED
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), found.get(field)?.clone())));
    let previous = Document::from_iter(kept);
    if !previous.is_empty() {
        lease.insert("prev", previous);
    }
    lease
}

/// The filter for a document that is still as it was found.
pub(super) fn unchanged(found: &Document) -> Document {
    let mut filter = doc! { "_id": LOCK_ID };
    for field in JUDGED {
        let condition = match found.get(field) {
            // Bare, a list or a pattern would ask for more than itself.
            Some(value) => doc! { "$eq": value.clone() },
            None => doc! { "$exists": false },
        };
        filter.insert(field, condition);
    }
    filter
}

/// Prolongs the lease and leaves its election as it is: it tells under which primary it was won.
pub(super) fn prolong(owner: &OwnerToken, timing: Timing, moment: Moment) -> Document {
    prolonging(moment, timing, prolonged(owner, moment))
}

/// Prolongs the lease, under whatever primary, and notes the fencing token for those who look, if
/// there is a new one.
pub(super) fn renew(
    owner: &OwnerToken,
    timing: Timing,
    moment: Moment,
    fence: Option<i64>,
) -> Document {
    let mut set = prolonged(owner, moment);
    set.extend(moment.election.map(|election| ("electionId".to_owned(), election.into())));
    set.extend(fence.map(|token| ("fence".to_owned(), token.into())));
    prolonging(moment, timing, set)
}

fn prolonged(owner: &OwnerToken, moment: Moment) -> Document {
    doc! { "leaseOwner": owner.as_str(), "lockedAt": DateTime::from_millis(moment.now) }
}

/// `$max` keeps every promise that was made, as in the other form.
fn prolonging(moment: Moment, timing: Timing, set: Document) -> Document {
    doc! { "$max": { "expiresAt": moment.end(timing) }, "$set": set, "$inc": { "beats": 1 } }
}

/// The fields by which a lock is judged, and those that move with every renewal.
const JUDGED: [&str; 7] =
    ["v", "owner", "leaseOwner", "lockedAt", "expiresAt", "beats", "electionId"];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lock::lease::{Identity, RunId};
    use crate::migration::Namespace;

    fn attempt() -> Attempt {
        let identity = Identity {
            run_id: RunId::random(),
            namespace: Namespace::default(),
            changelog: "history".to_owned(),
            host: "build-1".to_owned(),
            pid: 41,
            user: "deploy".to_owned(),
            operation: "up".to_owned(),
        };
        let timing = Timing::new(Duration::from_secs(60)).expect("a valid TTL");
        Attempt { owner: OwnerToken::random(), identity, timing, unmoved: None }
    }

    fn at(now: i64, election: ObjectId) -> Moment {
        Moment { now, election: Some(election) }
    }

    #[test]
    fn a_lease_is_over_at_once_only_by_the_clock_of_the_election_that_it_names() {
        let (old, new) = (ObjectId::new(), ObjectId::new());
        let lease = lease(&attempt(), at(0, old));
        for (moment, judgement) in [
            (at(59_999, old), Judgement::Held),
            (at(60_000, old), Judgement::Over),
            // The new primary's clock may run ahead.
            (at(60_000, new), Judgement::Held),
            (at(9_000_000, new), Judgement::Held),
        ] {
            assert_eq!(judged(&lease, &attempt(), moment), judgement, "{moment:?}");
        }
    }

    #[test]
    fn a_lease_names_the_election_whose_clock_its_dates_were_told_by() {
        let (owner, election) = (OwnerToken::from_text("a"), ObjectId::new());
        let written = doc! {
            "$max": { "expiresAt": DateTime::from_millis(61_000) },
            "$set": {
                "leaseOwner": "a",
                "lockedAt": DateTime::from_millis(1_000),
                "electionId": election,
            },
            "$inc": { "beats": 1 },
        };
        assert_eq!(renew(&owner, attempt().timing, at(1_000, election), None), written);
    }

    #[test]
    fn a_takeover_asks_for_everything_that_a_renewal_or_another_owner_would_have_changed() {
        let (election, attempt) = (ObjectId::new(), attempt());
        let found = lease(&attempt, at(0, election));
        let asked = unchanged(&found);
        let renewal = renew(&attempt.owner, attempt.timing, at(1, ObjectId::new()), None);
        let changes = ["$max", "$set", "$inc"];
        let changes = changes.iter().filter_map(|operator| renewal.get_document(operator).ok());
        for field in changes.flat_map(Document::keys).chain([&"owner".to_owned()]) {
            let value = found.get(field).expect("a lease has it").clone();
            assert_eq!(asked.get(field), Some(&doc! { "$eq": value }.into()), "{field}");
        }
        let nothing = unchanged(&doc! { "_id": LOCK_ID });
        assert_eq!(nothing.get("owner"), Some(&doc! { "$exists": false }.into()));
    }

    #[test]
    fn a_version_may_be_a_number_of_any_kind() {
        let decimal = |text: &str| Bson::Decimal128(text.parse().expect("a number"));
        let numbers = [Bson::Int32(2), Bson::Int64(2), Bson::Double(2.0), decimal("2.0")];
        let later = [Bson::Int32(3), Bson::Double(2.5), decimal("2.1"), Bson::Null];
        let foreign = |v| doc! { "v": v, "owner": "a", "lockedAt": DateTime::from_millis(0) };
        let judgement = |v| judged(&foreign(v), &attempt(), at(60_000, ObjectId::new()));
        assert!(numbers.map(judgement).iter().all(|judged| *judged == Judgement::Over));
        assert!(later.map(judgement).iter().all(|judged| *judged == Judgement::Held));
    }
}

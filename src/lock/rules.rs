//! What a lock's store decides, as pure functions: whose the lock is after an acquire, and what the
//! fence says.
//!
//! The memory store and the model check decide by these very functions, and where a server takes no
//! pipelines its acquires do. Other MongoDB servers decide by the expressions in `mongo_pipeline` and
//! `mongo_register`; one conformance suite holds all of them to the same answers.

use super::lease::{OwnerToken, RunId};
use super::store::{Arming, Unmoved, UnsettledRun, Watched};

/// A lock document, reduced to what decides who may take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight<'document> {
    /// The owner token, when it is text.
    pub owner: Option<&'document str>,
    /// Who wrote the lease.
    pub kind: Kind,
    /// How often it was renewed, as far as its writer counts.
    pub beats: Option<i64>,
    /// Is it over by the server's clock?
    pub over: bool,
    /// Was it written under the primary of now?
    pub same_election: bool,
}

/// Who wrote a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// We, in a version that we know.
    Own,
    /// A runner of 1.x, or nobody knows who.
    Foreign,
}

/// Whose the lock is when an acquire has been judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The asker's already: an earlier acquire of his was carried out.
    Ours,
    /// To be taken over.
    Over,
    /// Somebody else's.
    Held,
}

/// Judges an acquire of a lock that has a document.
///
/// An expired lease of our own kind is believed to be over only by a clock that its holder has met:
/// under another primary it must also have stood still. Runners of 1.x write neither elections nor
/// beats, so their expiry has to do.
pub fn judge(sight: Sight<'_>, asker: &OwnerToken, unmoved: Option<&Unmoved>) -> Judgement {
    if sight.owner == Some(asker.as_str()) {
        return Judgement::Ours;
    }
    let unmoved = unmoved.filter(|seen| {
        sight.kind == Kind::Own
            && sight.owner == Some(seen.owner.as_str())
            && sight.beats == Some(seen.beats)
    });
    let known_clock = sight.kind == Kind::Foreign || sight.same_election;
    let over = match unmoved.map(|seen| seen.watched) {
        Some(Watched::Throughout) => true,
        Some(Watched::Grace) => sight.over,
        None => sight.over && known_clock,
    };
    if over { Judgement::Over } else { Judgement::Held }
}

/// The fence and the register of unsettled runs. It outlives every lease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Fence {
    /// The highest fencing token that was given out; 0 before the first.
    pub token: i64,
    /// Whose it is.
    pub owner: Option<OwnerToken>,
    /// How often a transaction has written here to prove that its token is the highest.
    pub touch: i64,
    /// Runs whose operations on the server may have outlived them.
    pub unsettled: Vec<UnsettledRun>,
}

impl Fence {
    /// Gives out the next token, registers the run that gets it, and takes off the settled ones.
    pub fn raise(&mut self, owner: &OwnerToken, arming: &Arming) -> i64 {
        self.token += 1;
        self.owner = Some(owner.clone());
        let Arming { run, settled } = arming;
        self.unsettled
            .retain(|known| known.run_id != run.run_id && !settled.contains(&known.run_id));
        self.unsettled.push(run.clone());
        self.token
    }

    /// Takes a run off the register.
    pub fn settle(&mut self, run: &RunId) {
        self.unsettled.retain(|known| known.run_id != *run);
    }

    /// What the fence command does: writes if the token is the highest, and returns how many
    /// documents it matched.
    pub fn touch(&mut self, token: i64) -> u64 {
        let highest = self.token == token;
        self.touch += i64::from(highest);
        u64::from(highest)
    }
}

//! The changelog in memory, by the same rules and on a clock that tests set: for simulations, and as
//! the other half of the conformance suite that keeps both stores honest.
//!
//! Handles are cheap clones of one store; a [`Script`] decides the fate of their next commands. Like
//! its sibling, a handle sends a write whose reply was lost again before it gives up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::entry::{Entry, EntryKey, Status};
use super::memory_entries::{Subject, judge_settled, mark_by_hand, mark_claimed, restore, settle};
use super::store::{
    ADOPTER, Adoption, Advance, ChangelogStore, Claim, ClaimedEntry, Claiming, Expected, Lookout,
    Mark, NameIndex, Settlement, Written,
};
use crate::fault::{FaultKind, StoreFault};
use crate::import::source::Source;
use crate::import::tool::Tool;
use crate::lock::memory::{Fate, Script, ServerClock, locked, lost, refused};
use crate::lock::proof::StillHeld;
use crate::migration::{Direction, MigrationName, Namespace};

/// The changelog of a database that is no database.
#[derive(Debug, Clone)]
pub struct MemoryChangelogStore {
    clock: ServerClock,
    entries: Arc<Mutex<Vec<Entry>>>,
    commands: Arc<Mutex<Vec<Settlement>>>,
    foreign: Arc<Mutex<Vec<Source>>>,
    /// How entries stood before they were claimed last.
    before: Arc<Mutex<HashMap<EntryKey, Entry>>>,
    /// The unique index on the bare name, if there is one.
    name_index: Arc<Mutex<Option<String>>>,
    script: Script,
}

impl MemoryChangelogStore {
    /// An empty changelog.
    pub fn new(clock: ServerClock) -> Self {
        let (entries, commands, foreign) = (Arc::default(), Arc::default(), Arc::default());
        let (before, name_index, script) = (Arc::default(), Arc::default(), Script::default());
        Self { clock, entries, commands, foreign, before, name_index, script }
    }

    /// A handle on the same changelog whose commands have fates of their own.
    pub fn handle(&self) -> Self {
        Self { script: Script::default(), ..self.clone() }
    }

    /// What decides the fate of this handle's commands.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Adds an entry, whoever could have written it.
    pub fn plant(&self, entry: Entry) {
        locked(&self.entries).push(entry);
    }

    /// Adds another tool's changelog.
    pub fn plant_foreign(&self, source: Source) {
        locked(&self.foreign).push(source);
    }

    /// Makes the unique index on the bare name, as 1.x does.
    pub fn index_names(&self, index: &str) {
        *locked(&self.name_index) = Some(index.to_owned());
    }

    /// Removes an entry, as only a person can.
    pub fn remove(&self, key: &EntryKey) {
        locked(&self.entries).retain(|entry| entry.key != *key);
    }

    /// Runs what [`ChangelogStore::settle_command`] returned, at the moment its transaction commits.
    /// Returns the command's `n`.
    pub fn apply_command(&self, command: &[u8]) -> u64 {
        let index = command.try_into().map(usize::from_le_bytes).unwrap_or(usize::MAX);
        let Some(settlement) = locked(&self.commands).get(index).cloned() else { return 0 };
        let now = self.clock.now();
        u64::from(settle(&mut locked(&self.entries), &settlement, now))
    }

    /// Changes the entry of `subject` if it is as expected, creating it if none is expected.
    fn change(&self, subject: &Subject<'_>, change: impl Fn(&mut Entry, i64)) -> Written {
        if self.keeps_out(&locked(&self.entries), subject) {
            return Written::Refused(collision());
        }
        self.write(
            |entries, now| {
                subject.change(entries, now, &change);
            },
            |entries| subject.judge(entries),
        )
    }

    /// Does the index refuse a new entry?
    fn keeps_out(&self, entries: &[Entry], subject: &Subject<'_>) -> bool {
        locked(&self.name_index).is_some() && subject.is_named_elsewhere(entries)
    }

    /// Claims while the entries are locked.
    fn claim_one(&self, entries: &mut Vec<Entry>, claim: &Claim, now: i64) -> Written {
        let subject = Subject::of(claim);
        let before = entries.iter().find(|entry| entry.key == subject.key()).cloned();
        let claimed = subject.change(entries, now, &|entry, now| mark_claimed(entry, claim, now));
        if let Some(before) = before.filter(|_| claimed) {
            locked(&self.before).insert(before.key.clone(), before);
        }
        subject.judge(entries)
    }

    /// Sends a write until its fate is known, three times at most.
    fn write(
        &self,
        run: impl Fn(&mut Vec<Entry>, i64),
        look: impl Fn(&[Entry]) -> Written,
    ) -> Written {
        let mut doubtful = false;
        for _ in 0..TRIES {
            let mut entries = locked(&self.entries);
            match self.script.next() {
                Fate::Answered => {
                    run(&mut entries, self.clock.now());
                    return look(&entries);
                }
                Fate::Refused if !doubtful => return Written::Refused(refused()),
                Fate::Refused => return Written::Unknown(refused()),
                Fate::ReplyLost => {
                    run(&mut entries, self.clock.now());
                    doubtful = true;
                }
                Fate::RequestLost => doubtful = true,
            }
        }
        Written::Unknown(lost("the reply was lost"))
    }
}

impl ChangelogStore for MemoryChangelogStore {
    async fn transactions(&self) -> Result<bool, StoreFault> {
        Ok(true)
    }

    async fn entries(&self, namespace: &Namespace) -> Result<Vec<Entry>, StoreFault> {
        match self.script.next() {
            Fate::Answered => {}
            Fate::ReplyLost | Fate::RequestLost => return Err(lost("the reply was lost")),
            Fate::Refused => return Err(refused()),
        }
        let entries = locked(&self.entries);
        Ok(entries.iter().filter(|entry| entry.namespace == *namespace).cloned().collect())
    }

    async fn claim(&self, _proof: &StillHeld<'_>, claim: &Claim) -> Written {
        if self.keeps_out(&locked(&self.entries), &Subject::of(claim)) {
            return Written::Refused(collision());
        }
        self.write(
            |entries, now| {
                self.claim_one(entries, claim, now);
            },
            |entries| Subject::of(claim).judge(entries),
        )
    }

    fn claims_ahead(&self) -> bool {
        true
    }

    async fn settle_and_claim(
        &self,
        _proof: &StillHeld<'_>,
        settlement: &Settlement,
        claim: &Claim,
    ) -> Advance {
        let mut doubtful = false;
        for attempt in 0..TRIES {
            let mut entries = locked(&self.entries);
            let now = self.clock.now();
            match self.script.next() {
                Fate::Answered => {
                    settle(&mut entries, settlement, now);
                    return match judge_settled(&entries, settlement) {
                        Written::Done(_) if self.keeps_out(&entries, &Subject::of(claim)) => {
                            Advance::Settled(Claiming::Refused(collision()))
                        }
                        Written::Done(_) => {
                            let written = self.claim_one(&mut entries, claim, now);
                            Advance::Settled(Claiming::of(written, claim))
                        }
                        Written::Conflict(found) => Advance::Conflict(found),
                        Written::Unknown(fault) => Advance::Unknown(fault),
                        Written::Refused(fault) => Advance::Refused(fault),
                    };
                }
                Fate::Refused if !doubtful => return Advance::Refused(refused()),
                Fate::Refused => return Advance::Unknown(refused()),
                Fate::ReplyLost => {
                    let settled = settle(&mut entries, settlement, now);
                    // A server may die between two statements: the first time, it does.
                    if settled && attempt > 0 && !self.keeps_out(&entries, &Subject::of(claim)) {
                        self.claim_one(&mut entries, claim, now);
                    }
                    doubtful = true;
                }
                Fate::RequestLost => doubtful = true,
            }
        }
        Advance::Unknown(lost("the reply was lost"))
    }

    async fn withdraw(
        &self,
        _proof: &StillHeld<'_>,
        claimed: &ClaimedEntry,
        expected: &Expected,
    ) -> Result<(), StoreFault> {
        let written = self.write(
            |entries, _| {
                let ours = |entry: &Entry| {
                    entry.key == claimed.key
                        && entry.status == Status::Running
                        && entry.version == Some(claimed.version)
                        && entry.run_id.as_ref() == Some(&claimed.run_id)
                };
                match expected {
                    Expected::Absent => entries.retain(|entry| !ours(entry)),
                    Expected::Present { .. } => {
                        let before = locked(&self.before).get(&claimed.key).cloned();
                        let found = entries.iter_mut().find(|entry| ours(entry));
                        if let Some((entry, before)) = found.zip(before) {
                            restore(entry, before);
                        }
                    }
                }
            },
            |_| Written::Conflict(None),
        );
        match written {
            Written::Done(_) | Written::Conflict(_) => Ok(()),
            Written::Unknown(fault) | Written::Refused(fault) => Err(fault),
        }
    }

    async fn mark(&self, _proof: &StillHeld<'_>, mark: &Mark) -> Written {
        let subject = Subject {
            name: &mark.name,
            namespace: &mark.identity.namespace,
            expected: &mark.expected,
            run_id: &mark.identity.run_id,
            status: mark.verdict.status(),
        };
        self.change(&subject, |entry, now| mark_by_hand(entry, mark, now))
    }

    async fn settle(&self, _proof: &StillHeld<'_>, settlement: &Settlement) -> Written {
        self.write(
            |entries, now| {
                settle(entries, settlement, now);
            },
            |entries| judge_settled(entries, settlement),
        )
    }

    async fn adopt(&self, _proof: &StillHeld<'_>, adoption: &Adoption) -> Written {
        let subject = Subject {
            name: &adoption.name,
            namespace: &adoption.identity.namespace,
            expected: &Expected::Absent,
            run_id: &adoption.identity.run_id,
            status: Status::Applied,
        };
        self.change(&subject, |entry, now| {
            entry.direction = Some(Direction::Up);
            entry.batch = Some(adoption.batch);
            entry.applied_at = adoption.applied_at.or(Some(now));
            entry.duration_ms = Some(0);
            entry.checksum = Some(adoption.checksum.clone());
            entry.executed_by = Some(ADOPTER.to_owned());
            entry.origin = Some(adoption.origin.to_owned());
        })
    }

    async fn foreign(&self, lookout: Lookout<'_>) -> Result<Vec<Source>, StoreFault> {
        let mut sources = locked(&self.foreign).clone();
        sources.retain(|Source { collection, documents }| match lookout {
            Lookout::In(wanted) => collection == wanted,
            Lookout::Everywhere => {
                let first = &documents[..documents.len().min(1)];
                Tool::collections().contains(&collection.as_str())
                    || !Tool::detect(first).is_empty()
            }
        });
        Ok(sources)
    }

    async fn name_index(
        &self,
        namespace: &Namespace,
        names: &[&MigrationName],
    ) -> Result<Option<NameIndex>, StoreFault> {
        let entries = locked(&self.entries);
        let taken = names.iter().filter(|name| {
            entries.iter().any(|entry| entry.name == name.as_str() && entry.namespace != *namespace)
        });
        let names: Vec<String> = taken.map(ToString::to_string).collect();
        let index = locked(&self.name_index).clone().filter(|_| !names.is_empty());
        Ok(index.map(|index| NameIndex { index, names }))
    }

    fn settle_command(&self, settlement: &Settlement) -> Vec<u8> {
        let mut commands = locked(&self.commands);
        commands.push(settlement.clone());
        (commands.len() - 1).to_le_bytes().to_vec()
    }
}

fn collision() -> StoreFault {
    StoreFault {
        server_code: Some(11000),
        ..StoreFault::new(FaultKind::Rejected, "E11000 duplicate key error")
    }
}

/// As often as the store that this one stands in for.
const TRIES: u32 = 3;

//! The changelog in memory, by the same rules and on a clock that tests set: for simulations, and as
//! the other half of the conformance suite that keeps both stores honest.
//!
//! Handles are cheap clones of one store; a [`Script`] decides the fate of their next commands. Like
//! its sibling, a handle sends a write whose reply was lost again before it gives up.

use std::sync::{Arc, Mutex};

use super::entry::{Entry, EntryKey, Status};
use super::store::{
    ADOPTER, Adoption, ChangelogStore, Claim, Expected, MARKED, Mark, Outcome, Settlement, Verdict,
    Written,
};
use crate::fault::StoreFault;
use crate::import::source::Source;
use crate::lock::lease::RunId;
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
    script: Script,
}

impl MemoryChangelogStore {
    /// An empty changelog.
    pub fn new(clock: ServerClock) -> Self {
        let (entries, commands, foreign) = (Arc::default(), Arc::default(), Arc::default());
        Self { clock, entries, commands, foreign, script: Script::default() }
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
        let (key, version) = match subject.expected {
            Expected::Absent => (subject.created_key(), 1),
            Expected::Present { key, version, .. } => {
                (key.clone(), version.unwrap_or_default() + 1)
            }
        };
        self.write(
            |entries, now| {
                let Some(entry) = subject.meant(entries, &key) else { return false };
                entry.version = Some(version);
                entry.run_id = Some(subject.run_id.clone());
                change(entry, now);
                entry.status = subject.status.clone();
                true
            },
            |entries| {
                let found = entries.iter().find(|entry| entry.key == key);
                judge(found.or_else(|| subject.twin(entries)), |entry| {
                    entry.run_id.as_ref() == Some(subject.run_id)
                        && entry.version == Some(version)
                        && entry.status == subject.status
                })
            },
        )
    }

    /// Sends a write until its fate is known, three times at most.
    fn write(
        &self,
        run: impl Fn(&mut Vec<Entry>, i64) -> bool,
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
        let subject = Subject {
            name: &claim.name,
            namespace: &claim.identity.namespace,
            expected: &claim.expected,
            run_id: &claim.identity.run_id,
            status: Status::Running,
        };
        self.change(&subject, |entry, now| mark_claimed(entry, claim, now))
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
            |entries, now| settle(entries, settlement, now),
            |entries| {
                judge(entries.iter().find(|entry| entry.key == settlement.key), |entry| {
                    entry.run_id.as_ref() == Some(&settlement.run_id)
                        && entry.version == Some(settlement.version + 1)
                        && entry.status == settled_status(&settlement.outcome)
                })
            },
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

    async fn foreign(&self, among: &[&str]) -> Result<Vec<Source>, StoreFault> {
        let mut sources = locked(&self.foreign).clone();
        sources.retain(|source| among.contains(&source.collection.as_str()));
        Ok(sources)
    }

    fn settle_command(&self, settlement: &Settlement) -> Vec<u8> {
        let mut commands = locked(&self.commands);
        commands.push(settlement.clone());
        (commands.len() - 1).to_le_bytes().to_vec()
    }
}

fn judge(found: Option<&Entry>, ours: impl Fn(&Entry) -> bool) -> Written {
    match found {
        Some(entry) if ours(entry) => Written::Done(entry.clone()),
        found => Written::Conflict(found.cloned()),
    }
}

/// Which entry a claim or a mark is about, and what becomes of it.
struct Subject<'a> {
    name: &'a MigrationName,
    namespace: &'a Namespace,
    expected: &'a Expected,
    run_id: &'a RunId,
    status: Status,
}

impl Subject<'_> {
    fn created_key(&self) -> EntryKey {
        let id = format!("{}/{}", self.namespace.name().unwrap_or_default(), self.name);
        EntryKey(serde_json::Value::String(id).to_string())
    }

    /// Another entry of the same migration, such as one by 1.x.
    fn twin<'e>(&self, entries: &'e [Entry]) -> Option<&'e Entry> {
        entries
            .iter()
            .find(|entry| entry.namespace == *self.namespace && entry.name == self.name.as_str())
    }

    /// The entry to change, if it is as expected: a blank one if none is expected.
    fn meant<'e>(&self, entries: &'e mut Vec<Entry>, key: &EntryKey) -> Option<&'e mut Entry> {
        let position = entries.iter().position(|entry| entry.key == *key);
        match (self.expected, position) {
            (Expected::Absent, None) if self.twin(entries).is_none() => {
                entries.push(self.blank(key.clone()));
                entries.last_mut()
            }
            (Expected::Present { status, version, .. }, Some(position)) => {
                let entry = &mut entries[position];
                let holds = entry.status == *status && entry.version == *version;
                holds.then(|| remember(entry)).map(|()| entry)
            }
            (Expected::Absent | Expected::Present { .. }, _) => None,
        }
    }

    fn blank(&self, key: EntryKey) -> Entry {
        Entry {
            key,
            name: self.name.to_string(),
            namespace: self.namespace.clone(),
            status: self.status.clone(),
            version: None,
            run_id: None,
            direction: None,
            batch: None,
            started_at: None,
            applied_at: None,
            reverted_at: None,
            duration_ms: None,
            checksum: None,
            description: None,
            executed_by: None,
            host: None,
            origin: None,
            error: None,
            reason: None,
            history: Vec::new(),
        }
    }
}

fn remember(entry: &mut Entry) {
    entry.history.push(entry.past());
    let too_many = entry.history.len().saturating_sub(Entry::HISTORY);
    entry.history.drain(..too_many);
}

fn mark_claimed(entry: &mut Entry, claim: &Claim, now: i64) {
    entry.direction = Some(claim.direction);
    entry.started_at = Some(now);
    entry.executed_by = Some(claim.identity.user.clone());
    entry.host = Some(claim.identity.host.clone());
    entry.error = None;
    entry.reason = None;
    match claim.direction {
        Direction::Down => {}
        Direction::Up => {
            entry.batch = claim.batch.or(entry.batch);
            entry.checksum = claim.checksum.clone();
            entry.description = claim.description.clone();
            entry.origin = None;
        }
    }
}

fn mark_by_hand(entry: &mut Entry, mark: &Mark, now: i64) {
    entry.executed_by = Some(mark.identity.user.clone());
    entry.host = Some(mark.identity.host.clone());
    entry.error = None;
    entry.reason = mark.reason.clone();
    match &mark.verdict {
        Verdict::Applied { batch, checksum } => {
            entry.batch = Some(*batch);
            entry.checksum = Some(checksum.clone());
            entry.applied_at = Some(now);
            entry.reverted_at = None;
            entry.duration_ms = Some(0);
            entry.origin = Some(MARKED.to_owned());
        }
        Verdict::Accepted { checksum } => entry.checksum = Some(checksum.clone()),
        Verdict::Reverted => entry.reverted_at = Some(now),
    }
}

fn settle(entries: &mut [Entry], settlement: &Settlement, now: i64) -> bool {
    let claimed = entries.iter_mut().find(|entry| {
        entry.key == settlement.key
            && entry.status == Status::Running
            && entry.version == Some(settlement.version)
            && entry.run_id.as_ref() == Some(&settlement.run_id)
    });
    let Some(entry) = claimed else { return false };
    entry.version = Some(settlement.version + 1);
    entry.status = settled_status(&settlement.outcome);
    entry.error = None;
    match &settlement.outcome {
        Outcome::Applied { duration_ms } => {
            entry.applied_at = Some(now);
            entry.reverted_at = None;
            entry.duration_ms = duration_ms.or(entry.started_at.map(|started| now - started));
        }
        Outcome::Reverted => entry.reverted_at = Some(now),
        Outcome::UpFailed(error) | Outcome::DownFailed(error) => entry.error = Some(error.clone()),
    }
    true
}

fn settled_status(outcome: &Outcome) -> Status {
    match outcome {
        Outcome::Applied { .. } | Outcome::DownFailed(_) => Status::Applied,
        Outcome::Reverted => Status::Reverted,
        Outcome::UpFailed(_) => Status::Failed,
    }
}

/// As often as the store that this one stands in for.
const TRIES: u32 = 3;

//! The changelog in memory, by the same rules and on a clock that tests set: for simulations, and as
//! the other half of the conformance suite that keeps both stores honest.
//!
//! Handles are cheap clones of one store; a [`Script`] decides the fate of their next commands. Like
//! its sibling, a handle sends a write whose reply was lost again before it gives up.

use std::sync::{Arc, Mutex};

use super::entry::{Entry, EntryKey, Status};
use super::store::{ChangelogStore, Claim, Expected, Outcome, Settlement, Written};
use crate::fault::StoreFault;
use crate::lock::memory::{Fate, Script, ServerClock, locked, lost, refused};
use crate::lock::proof::StillHeld;
use crate::migration::{Direction, Namespace};

/// The changelog of a database that is no database.
#[derive(Debug, Clone)]
pub struct MemoryChangelogStore {
    clock: ServerClock,
    entries: Arc<Mutex<Vec<Entry>>>,
    commands: Arc<Mutex<Vec<Settlement>>>,
    script: Script,
}

impl MemoryChangelogStore {
    /// An empty changelog.
    pub fn new(clock: ServerClock) -> Self {
        Self { clock, entries: Arc::default(), commands: Arc::default(), script: Script::default() }
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
        let run_id = Some(&claim.identity.run_id);
        let (key, version) = match &claim.expected {
            Expected::Absent => (created_key(claim), 1),
            Expected::Present { key, version, .. } => {
                (key.clone(), version.unwrap_or_default() + 1)
            }
        };
        self.write(
            |entries, now| try_claim(entries, claim, &key, now),
            |entries| {
                let found = entries.iter().find(|entry| entry.key == key);
                judge(found.or_else(|| twin(entries, claim)), |entry| {
                    entry.run_id.as_ref() == run_id
                        && entry.version == Some(version)
                        && entry.status == Status::Running
                })
            },
        )
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

fn created_key(claim: &Claim) -> EntryKey {
    let namespace = claim.identity.namespace.name().unwrap_or_default();
    let id = format!("{namespace}/{}", claim.name);
    EntryKey(serde_json::Value::String(id).to_string())
}

/// Another entry of the same migration, such as one by 1.x.
fn twin<'a>(entries: &'a [Entry], claim: &Claim) -> Option<&'a Entry> {
    entries.iter().find(|entry| {
        entry.namespace == claim.identity.namespace && entry.name == claim.name.as_str()
    })
}

fn try_claim(entries: &mut Vec<Entry>, claim: &Claim, key: &EntryKey, now: i64) -> bool {
    let position = entries.iter().position(|entry| entry.key == *key);
    match (&claim.expected, position) {
        (Expected::Absent, None) if twin(entries, claim).is_none() => {
            let mut entry = blank(key.clone(), claim);
            mark_claimed(&mut entry, claim, now);
            entries.push(entry);
            true
        }
        (Expected::Present { status, version, .. }, Some(position)) => {
            let entry = &mut entries[position];
            let holds = entry.status == *status && entry.version == *version;
            if holds {
                mark_claimed(entry, claim, now);
            }
            holds
        }
        (Expected::Absent | Expected::Present { .. }, _) => false,
    }
}

fn blank(key: EntryKey, claim: &Claim) -> Entry {
    Entry {
        key,
        name: claim.name.to_string(),
        namespace: claim.identity.namespace.clone(),
        status: Status::Running,
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
    }
}

fn mark_claimed(entry: &mut Entry, claim: &Claim, now: i64) {
    entry.status = Status::Running;
    entry.version = Some(entry.version.unwrap_or_default() + 1);
    entry.run_id = Some(claim.identity.run_id.clone());
    entry.direction = Some(claim.direction);
    entry.started_at = Some(now);
    entry.executed_by = Some(claim.identity.user.clone());
    entry.host = Some(claim.identity.host.clone());
    entry.error = None;
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

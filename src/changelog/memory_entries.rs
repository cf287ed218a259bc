//! What becomes of entries in memory: the rules of `mongo_change`, said once more in Rust.

use super::entry::{Entry, EntryKey, Status};
use super::store::{Claim, Expected, MARKED, Mark, Outcome, Settlement, Verdict, Written};
use crate::lock::lease::RunId;
use crate::migration::{Direction, MigrationName, Namespace};

fn judge(found: Option<&Entry>, ours: impl Fn(&Entry) -> bool) -> Written {
    match found {
        Some(entry) if ours(entry) => Written::Done(entry.clone()),
        found => Written::Conflict(found.cloned()),
    }
}

/// Which entry a claim or a mark is about, and what becomes of it.
pub(super) struct Subject<'a> {
    pub name: &'a MigrationName,
    pub namespace: &'a Namespace,
    pub expected: &'a Expected,
    pub run_id: &'a RunId,
    pub status: Status,
}

impl<'a> Subject<'a> {
    pub(super) fn of(claim: &'a Claim) -> Self {
        Self {
            name: &claim.name,
            namespace: &claim.identity.namespace,
            expected: &claim.expected,
            run_id: &claim.identity.run_id,
            status: Status::Running,
        }
    }

    pub(super) fn key(&self) -> EntryKey {
        match self.expected {
            Expected::Absent => self.created_key(),
            Expected::Present { key, .. } => key.clone(),
        }
    }

    /// The entry's version once it is changed.
    fn version(&self) -> i64 {
        match self.expected {
            Expected::Absent => 1,
            Expected::Present { version, .. } => version.unwrap_or_default() + 1,
        }
    }

    /// Changes the entry if it is as expected: was it?
    pub(super) fn change(
        &self,
        entries: &mut Vec<Entry>,
        now: i64,
        change: &impl Fn(&mut Entry, i64),
    ) -> bool {
        let Some(entry) = self.meant(entries, &self.key()) else { return false };
        entry.version = Some(self.version());
        entry.run_id = Some(self.run_id.clone());
        change(entry, now);
        entry.status = self.status.clone();
        true
    }

    /// What the entry is after the change, or instead of it.
    pub(super) fn judge(&self, entries: &[Entry]) -> Written {
        let key = self.key();
        let found = entries.iter().find(|entry| entry.key == key);
        judge(found.or_else(|| self.twin(entries)), |entry| {
            entry.run_id.as_ref() == Some(self.run_id)
                && entry.version == Some(self.version())
                && entry.status == self.status
        })
    }

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

    /// Would it be a new entry whose name another namespace has?
    pub(super) fn is_named_elsewhere(&self, entries: &[Entry]) -> bool {
        *self.expected == Expected::Absent
            && self.twin(entries).is_none()
            && entries.iter().any(|entry| entry.name == self.name.as_str())
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
            name: self.name.to_string(),
            namespace: self.namespace.clone(),
            status: self.status.clone(),
            ..Entry::blank(key)
        }
    }
}

fn remember(entry: &mut Entry) {
    entry.history.push(entry.past());
    let too_many = entry.history.len().saturating_sub(Entry::HISTORY);
    entry.history.drain(..too_many);
}

pub(super) fn mark_claimed(entry: &mut Entry, claim: &Claim, now: i64) {
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

pub(super) fn mark_by_hand(entry: &mut Entry, mark: &Mark, now: i64) {
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

pub(super) fn settle(entries: &mut [Entry], settlement: &Settlement, now: i64) -> bool {
    let mut of_key = entries.iter_mut().filter(|entry| entry.key == settlement.key);
    let claimed = of_key.find(|entry| settlement.fits(entry));
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

pub(super) fn judge_settled(entries: &[Entry], settlement: &Settlement) -> Written {
    judge(entries.iter().find(|entry| entry.key == settlement.key), |entry| {
        entry.run_id.as_ref() == Some(&settlement.run_id)
            && entry.version == Some(settlement.version + 1)
            && entry.status == settled_status(&settlement.outcome)
    })
}

/// Brings back how an entry stood `before` its claim. What the claim has read of the file stays.
pub(super) fn restore(entry: &mut Entry, before: Entry) {
    let mut history = std::mem::take(&mut entry.history);
    history.pop();
    let version = entry.version.map(|version| version + 1);
    *entry = Entry { version, history, description: entry.description.take(), ..before };
}

fn settled_status(outcome: &Outcome) -> Status {
    match outcome {
        Outcome::Applied { .. } | Outcome::DownFailed(_) => Status::Applied,
        Outcome::Reverted => Status::Reverted,
        Outcome::UpFailed(_) => Status::Failed,
    }
}

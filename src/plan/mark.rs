//! The plan of a `mark`: does the entry have to be changed, and from what?

use super::{Inputs, MarkAs, Plan, Problem, Step, entries_by_name, up};
use crate::changelog::entry::{Entry, Status};
use crate::migration::{Direction, MigrationFile, MigrationName};

/// One step without a body. It has a batch when the migration counts as applied from now on, and
/// none when it was applied before, and only its file is accepted as it is.
pub(super) fn plan(
    name: &MigrationName,
    state: MarkAs,
    inputs: Inputs<'_>,
) -> Result<Plan, Vec<Problem>> {
    let file = inputs.files.iter().find(|file| file.name == *name);
    let entry = entries_by_name(inputs.entries).get(name).copied();
    let (direction, known, done) = match state {
        MarkAs::Applied => (Direction::Up, file.is_some(), stands(entry, file)),
        MarkAs::Pending => (Direction::Down, file.is_some() || entry.is_some(), is_pending(entry)),
    };
    if !known {
        let available = inputs.files.iter().map(|file| file.name.to_string()).collect();
        return Err(vec![Problem::UnknownFile { name: name.to_string(), available }]);
    }
    let mut plan = Plan { direction, steps: vec![], skipped: vec![], warnings: vec![] };
    if done {
        plan.skipped.push(name.clone());
    } else {
        let newly = state == MarkAs::Applied && !entry.is_some_and(Entry::is_revertible);
        let batch = newly.then(|| up::next_batch(inputs.entries));
        plan.steps.push(Step { batch, ..Step::new(name, file, entry) });
    }
    Ok(plan)
}

/// Is it applied, by this very file, with nothing left to be said?
fn stands(entry: Option<&Entry>, file: Option<&MigrationFile>) -> bool {
    let Some((entry, file)) = entry.zip(file) else { return false };
    let same = entry.checksum.as_deref().is_some_and(|stored| file.checksum.matches(stored));
    entry.is_applied() && entry.error.is_none() && same
}

fn is_pending(entry: Option<&Entry>) -> bool {
    entry.is_none_or(|entry| entry.status == Status::Reverted)
}

//! The plan of a `down`.

use std::cmp::Reverse;

use super::{Inputs, Plan, Problem, Selection, Step, entries_by_name, same_stem_twice};
use crate::changelog::entry::Entry;
use crate::migration::{Direction, MigrationFile, MigrationName};

pub(super) fn plan(
    selection: &Selection,
    force: bool,
    inputs: Inputs<'_>,
) -> Result<Plan, Vec<Problem>> {
    let mut problems = same_stem_twice(inputs.files);
    let entries = entries_by_name(inputs.entries);
    // Latest first: by when it was applied, then by name. An entry whose `down` was interrupted is
    // still to be reverted.
    let mut revertible: Vec<(MigrationName, &Entry)> =
        entries.into_iter().filter(|(_, entry)| entry.is_revertible()).collect();
    revertible.sort_by(|(a, x), (b, y)| {
        Reverse(x.applied_at).cmp(&Reverse(y.applied_at)).then_with(|| b.cmp_code_units(a))
    });

    let chosen = choose(selection, &revertible).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    let file_of = |name: &MigrationName| inputs.files.iter().find(|file| file.name == *name);
    let mut plan =
        Plan { direction: Direction::Down, steps: vec![], skipped: vec![], warnings: vec![] };
    let mut edited = Vec::new();
    for (name, entry) in chosen {
        let file = file_of(name);
        match file {
            None => problems.push(Problem::FileMissing { name: name.to_string() }),
            Some(file) if !force && is_edited(file, entry) => edited.push(name.to_string()),
            Some(_) => {}
        }
        plan.steps.push(Step { batch: entry.batch, ..Step::new(name, file, Some(entry)) });
    }
    if !edited.is_empty() {
        problems.push(Problem::Edited { names: edited });
    }
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

fn is_edited(file: &MigrationFile, entry: &Entry) -> bool {
    entry
        .checksum
        .as_deref()
        .is_some_and(|stored| !stored.is_empty() && !file.checksum.matches(stored))
}

type Chosen<'a> = Vec<(&'a MigrationName, &'a Entry)>;

fn choose<'a>(
    selection: &Selection,
    revertible: &'a [(MigrationName, &'a Entry)],
) -> Result<Chosen<'a>, Problem> {
    let all = || revertible.iter().map(|(name, entry)| (name, *entry));
    let of_batch = |batch: i64| all().filter(|(_, entry)| entry.batch == Some(batch)).collect();
    let chosen: Chosen<'a> = match selection {
        Selection::LastBatch => {
            let last = all().filter_map(|(_, entry)| entry.batch).max();
            last.map_or_else(Vec::new, of_batch)
        }
        Selection::Batch(batch) => {
            let found: Chosen<'a> = of_batch(*batch);
            if found.is_empty() {
                let mut batches: Vec<i64> = all().filter_map(|(_, entry)| entry.batch).collect();
                batches.sort_unstable();
                batches.dedup();
                return Err(Problem::NoSuchBatch { batch: *batch, batches });
            }
            found
        }
        Selection::Steps(count) => {
            all().take(usize::try_from(*count).unwrap_or(usize::MAX)).collect()
        }
        Selection::To(name) | Selection::File(name) => {
            let Some(place) = revertible.iter().position(|(known, _)| known == name) else {
                let applied = all().map(|(known, _)| known.to_string()).collect();
                return Err(Problem::NotApplied { name: name.to_string(), applied });
            };
            let kept = matches!(selection, Selection::To(_));
            if kept { all().take(place).collect() } else { all().skip(place).take(1).collect() }
        }
    };
    Ok(chosen)
}

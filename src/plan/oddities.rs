//! What is odd about the files of an `up` and worth saying before they run: numbers that do not sort
//! as numbers, and files that seem to be applied ones under another name.
//!
//! Only pending files are spoken of: of what is applied there is nothing left to decide.

use std::collections::HashSet;

use super::{Inputs, Plan, Warning, entries_by_name};
use crate::migration::{MigrationFile, MigrationName};

pub(super) fn oddities(plan: &Plan, inputs: Inputs<'_>) -> Vec<Warning> {
    let pending: HashSet<&MigrationName> =
        plan.steps.iter().filter(|step| !step.forced).map(|step| &step.name).collect();
    if pending.is_empty() {
        return Vec::new();
    }
    number_order(inputs.files, &pending).into_iter().chain(renamed(inputs, &pending)).collect()
}

/// A name that begins with a number, after that number.
type Numbered<'a> = (Number<'a>, &'a MigrationName);

/// How many digits, and which, without leading zeros: compares as numbers do, however long they are.
type Number<'a> = (usize, &'a str);

/// The first pair that applies in another order than its numbers.
fn number_order(files: &[MigrationFile], pending: &HashSet<&MigrationName>) -> Option<Warning> {
    let mut highest: Option<Numbered<'_>> = None;
    let mut highest_pending: Option<Numbered<'_>> = None;
    for MigrationFile { name, .. } in files {
        let Some(number) = number(name) else { continue };
        let is_pending = pending.contains(name);
        let before = if is_pending { highest } else { highest_pending };
        if let Some((_, earlier)) = before.filter(|(other, _)| *other > number) {
            return Some(out_of_numbers(earlier, name));
        }
        highest = highest.max(Some((number, name)));
        if is_pending {
            highest_pending = highest_pending.max(Some((number, name)));
        }
    }
    None
}

fn out_of_numbers(earlier: &MigrationName, later: &MigrationName) -> Warning {
    let (first, second) = (earlier.as_str(), later.as_str());
    let message = format!(
        "\"{}\" runs before \"{}\": names sort as text, not as numbers. Give all numbers the same length",
        first.escape_debug(),
        second.escape_debug(),
    );
    Warning { code: "NUMBER_ORDER", message, names: vec![first.into(), second.into()] }
}

/// The number that a name begins with.
fn number(name: &MigrationName) -> Option<Number<'_>> {
    let text = name.as_str();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let digits = text[..end].trim_start_matches('0');
    (end > 0).then_some((digits.len(), digits))
}

/// Pending files with the content of applied ones whose file is gone.
fn renamed(inputs: Inputs<'_>, pending: &HashSet<&MigrationName>) -> Vec<Warning> {
    let on_disk: HashSet<&MigrationName> = inputs.files.iter().map(|file| &file.name).collect();
    let entries = entries_by_name(inputs.entries);
    let gone =
        entries.into_iter().filter(|(name, entry)| entry.is_applied() && !on_disk.contains(name));
    let mut gone: Vec<_> = gone.collect();
    gone.sort_unstable_by(|(a, _), (b, _)| a.cmp_code_units(b));
    let pairs = gone.iter().filter_map(|(name, entry)| {
        let stored = entry.checksum.as_deref().filter(|stored| !stored.is_empty())?;
        let same = inputs
            .files
            .iter()
            .find(|file| pending.contains(&file.name) && file.checksum.matches(stored))?;
        Some(seems_renamed(name, &same.name))
    });
    pairs.collect()
}

fn seems_renamed(gone: &MigrationName, found: &MigrationName) -> Warning {
    let (old, new) = (gone.as_str(), found.as_str());
    let message = format!(
        "\"{}\" is missing, and \"{}\" has its content: was it renamed? It is pending under the new name; \
         `mmk mark <file> --applied` says that it is done",
        old.escape_debug(),
        new.escape_debug(),
    );
    Warning { code: "RENAMED", message, names: vec![old.into(), new.into()] }
}

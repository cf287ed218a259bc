//! The plan of an `up`.

use std::collections::HashMap;

use super::oddities::oddities;
use super::{
    Inputs, OutOfOrder, Plan, Problem, Scope, Step, Vantage, Warning, drift, entries_by_name,
    same_stem_twice,
};
use crate::changelog::entry::{Entry, Status};
use crate::migration::{Direction, MigrationFile, MigrationName};

pub(super) fn plan(
    scope: &Scope,
    step: bool,
    force: bool,
    inputs: Inputs<'_>,
) -> Result<Plan, Vec<Problem>> {
    let mut problems = same_stem_twice(inputs.files);
    let mut warnings = Vec::new();
    let entries = entries_by_name(inputs.entries);

    let chosen: Vec<&MigrationFile> =
        inputs.files.iter().filter(|file| scope.covers(&file.name)).collect();
    let unknown = |name: &&MigrationName| !inputs.files.iter().any(|file| file.name == **name);
    if let Some(name) = scope.named().filter(unknown) {
        let available = inputs.files.iter().map(|file| file.name.to_string()).collect();
        problems.push(Problem::UnknownFile { name: name.to_string(), available });
    }

    let mut plan =
        Plan { direction: Direction::Up, steps: vec![], skipped: vec![], warnings: vec![] };
    let base = next_batch(inputs.entries);
    let applied_stems = applied_by_stem(&entries);
    for file in chosen {
        let entry = entries.get(&file.name).copied();
        if entry.is_none() {
            let twin = applied_stems.get(file.name.stem()).filter(|twin| unknown(twin));
            problems.extend(twin.map(|twin| Problem::AppliedUnderAnother {
                name: file.name.to_string(),
                applied: twin.to_string(),
            }));
        }
        let applied = entry.is_some_and(Entry::is_applied);
        if applied && !force {
            if let Scope::File(name) = scope {
                plan.skipped.push(name.clone());
            }
            continue;
        }
        if let Some(entry) = entry.filter(|entry| is_interrupted_down(entry, inputs.vantage)) {
            problems.push(Problem::InterruptedDown { name: entry.name.clone() });
        }
        let offset = if step { i64::try_from(plan.steps.len()).unwrap_or(i64::MAX) } else { 0 };
        plan.steps.push(Step {
            batch: Some(base.saturating_add(offset)),
            forced: applied,
            ..Step::new(&file.name, Some(file), entry)
        });
    }

    judge_drift(inputs, &mut problems, &mut warnings);
    judge_order(&plan, inputs, &mut problems, &mut warnings);
    warnings.extend(oddities(&plan, inputs));
    plan.warnings = warnings;
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

/// What is applied, by the name without its extension: a build turns `.ts` into `.js`, and must not
/// make an applied migration pending.
fn applied_by_stem<'a>(
    entries: &'a HashMap<MigrationName, &Entry>,
) -> HashMap<&'a str, &'a MigrationName> {
    let applied = entries.iter().filter(|(_, entry)| entry.is_applied());
    applied.map(|(name, _)| (name.stem(), name)).collect()
}

/// One more than the highest batch there ever was, reverted ones included, as 1.x counts.
pub(super) fn next_batch(entries: &[Entry]) -> i64 {
    entries.iter().filter_map(|entry| entry.batch).max().unwrap_or(0).saturating_add(1)
}

fn is_interrupted_down(entry: &Entry, vantage: Vantage) -> bool {
    vantage == Vantage::UnderLock
        && entry.status == Status::Running
        && entry.direction == Some(Direction::Down)
}

fn judge_drift(inputs: Inputs<'_>, problems: &mut Vec<Problem>, warnings: &mut Vec<Warning>) {
    let (edited, missing) = drift(inputs);
    for (names, problem, code) in [
        (edited, as_edited as fn(Vec<String>) -> Problem, "CHECKSUM_MISMATCH"),
        (missing, as_gone, "FILE_MISSING"),
    ] {
        if names.is_empty() {
            continue;
        }
        let drifted = problem(names.clone());
        if inputs.policy.strict {
            problems.push(drifted);
        } else {
            warnings.push(Warning { code, message: drifted.to_string(), names });
        }
    }
}

fn as_edited(names: Vec<String>) -> Problem {
    Problem::Edited { names }
}

fn as_gone(names: Vec<String>) -> Problem {
    Problem::Gone { names }
}

/// A pending file that sorts before an applied one came late: a merged branch, most often.
fn judge_order(
    plan: &Plan,
    inputs: Inputs<'_>,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<Warning>,
) {
    if plan.steps.is_empty() {
        return;
    }
    let latest = inputs
        .entries
        .iter()
        .filter(|entry| entry.is_applied())
        .filter_map(|entry| MigrationName::new(&entry.name).ok())
        .max_by(MigrationName::cmp_code_units);
    let Some(latest) = latest else { return };
    let names: Vec<String> = plan
        .steps
        .iter()
        .filter(|step| !step.forced && step.name.cmp_code_units(&latest).is_lt())
        .map(|step| step.name.to_string())
        .collect();
    if names.is_empty() {
        return;
    }
    let problem = Problem::OutOfOrder { names: names.clone(), latest: latest.to_string() };
    match inputs.policy.out_of_order {
        OutOfOrder::Allow => {}
        OutOfOrder::Warn => {
            warnings.push(Warning { code: "OUT_OF_ORDER", message: problem.to_string(), names });
        }
        OutOfOrder::Error => problems.push(problem),
    }
}

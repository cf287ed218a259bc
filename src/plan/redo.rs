//! The plan of a `redo`: revert one migration, then apply it again.
//!
//! It has two halves, because the second is made from what the first one has written. Whether the
//! second will be possible is judged before the first begins, on the entries as they will be then:
//! nobody wants to be left in the middle.

use super::{Inputs, OutOfOrder, Plan, Policy, Problem, Scope, Selection, down, up};
use crate::changelog::entry::{Entry, Status};
use crate::migration::MigrationName;

/// Reverts the file, or the latest one. That the file was edited is what a redo is for.
pub(super) fn first_half(
    file: Option<&MigrationName>,
    inputs: Inputs<'_>,
) -> Result<Plan, Vec<Problem>> {
    let selection = file.map_or(Selection::Steps(1), |name| Selection::File(name.clone()));
    let plan = down::plan(&selection, true, inputs)?;
    if let Some(step) = plan.steps.first() {
        let reverted: Vec<Entry> = inputs.entries.iter().map(|e| without(&step.name, e)).collect();
        second_half(&step.name, Inputs { entries: &reverted, ..inputs })?;
    }
    Ok(plan)
}

/// Applies it again. It had its place in the order before, so that is no question now.
pub(super) fn second_half(name: &MigrationName, inputs: Inputs<'_>) -> Result<Plan, Vec<Problem>> {
    let policy = Policy { out_of_order: OutOfOrder::Allow, ..inputs.policy };
    up::plan(&Scope::File(name.clone()), false, false, Inputs { policy, ..inputs })
}

/// The entry as it is once `name` is reverted.
fn without(name: &MigrationName, entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if entry.is_about(name) {
        entry.status = Status::Reverted;
    }
    entry
}

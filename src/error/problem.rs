//! What makes a plan impossible, with its public face.

use serde_json::{Value, json};

use crate::event::Unfinished;
use crate::plan::{Problem, drop_index};

/// All problems, and the facts of the first one where 1.x puts them.
pub(super) fn context(problems: &[Problem]) -> Value {
    let all: Vec<Value> = problems
        .iter()
        .map(|problem| {
            json!({ "code": problem.code(), "message": problem.to_string(), "facts": problem.facts() })
        })
        .collect();
    let mut context = problems.first().map_or_else(|| json!({}), Problem::facts);
    if let Value::Object(facts) = &mut context {
        facts.insert("problems".into(), Value::Array(all));
    }
    context
}

impl Problem {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Edited { .. } => Some(
                "restore the file, accept it as it is with `mmk mark <file> --applied`, or revert \
                 with what is there now: `mmk down --force`",
            ),
            Self::Gone { .. } | Self::FileMissing { .. } => {
                Some("restore the file from your repository")
            }
            Self::TransactionsUnsupported { .. } => Some(
                "nothing was run: turn useTransaction off for them, or use a replica set (one member is enough)",
            ),
            Self::TwoExtensions { .. } => Some("remove or rename one of them"),
            Self::AppliedUnderAnother { .. } => {
                Some("`mmk mark <file> --applied` says that it is the same migration")
            }
            Self::OutOfOrder { .. } => {
                Some("rename the file, or set outOfOrder to 'warn' or 'allow'")
            }
            Self::NeedsALook { .. } => Some(
                "look at what it left behind, then `mmk mark <file> --pending` lets it run again, and \
                 --applied says that it is done",
            ),
            Self::InterruptedDown { .. } => {
                Some("run down again to finish it, or `mmk mark <file> --applied|--pending`")
            }
            Self::ForeignChangelog { .. } => Some(
                "add --dry-run to see first what it would write; `mmk up --force-fresh` applies the files \
                 all the same",
            ),
            Self::NameTaken { .. } => Some(
                "drop it once no mongo-migrate-kit 1.x uses the collection: 1.x makes it again whenever it \
                 starts, and can't start when names are there twice; until then set migrationsCollection \
                 to one of its own",
            ),
            Self::NotApplied { .. } | Self::NoSuchBatch { .. } | Self::UnknownFile { .. } => {
                Some("`mmk status` shows what there is")
            }
            Self::Irreversible { .. } => Some(
                "nothing was reverted: write its down and accept the file as it is then with `mmk mark <file> \
                 --applied`, or undo it by hand and say so with --pending",
            ),
            Self::Unusable { .. } => None,
        }
    }

    fn facts(&self) -> Value {
        match self {
            Self::UnknownFile { name, available } => {
                json!({ "filename": name, "available": available })
            }
            Self::FileMissing { name } => json!({ "filename": name }),
            Self::Unusable { name, error } => {
                let mut facts = error.context.clone();
                if let Value::Object(facts) = &mut facts {
                    facts.insert("name".into(), json!(name));
                }
                facts
            }
            Self::Irreversible { name } => json!({ "names": [name] }),
            Self::TransactionsUnsupported { names } => {
                json!({ "name": names.first(), "names": names })
            }
            Self::TwoExtensions { first, second } => json!({ "names": [first, second] }),
            Self::AppliedUnderAnother { name, applied } => {
                json!({ "name": name, "names": [name, applied] })
            }
            Self::Edited { names } | Self::Gone { names } => json!({ "names": names }),
            Self::OutOfOrder { names, latest } => json!({ "names": names, "latest": latest }),
            Self::NotApplied { name, applied } => json!({ "filename": name, "applied": applied }),
            Self::NoSuchBatch { batch, batches } => json!({ "batch": batch, "batches": batches }),
            Self::NeedsALook { name, unfinished } => {
                let state = match unfinished {
                    Unfinished::Interrupted => "interrupted",
                    Unfinished::Failed => "failed",
                };
                json!({ "name": name, "state": state })
            }
            Self::ForeignChangelog { collection, tool, command, names } => json!({
                "collection": collection, "tool": tool, "command": command, "names": names,
            }),
            Self::NameTaken { index, collection, names } => json!({
                "collection": collection, "index": index, "names": names,
                "command": drop_index(collection, index),
            }),
            Self::InterruptedDown { name } => json!({ "name": name, "state": "interrupted" }),
        }
    }
}

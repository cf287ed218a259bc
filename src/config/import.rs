//! An import as the JavaScript side asks for it.

use serde::Deserialize;

use super::InvalidSettings;
use crate::import::adopt::Mode;
use crate::import::intake::{MissingFiles, Target, Trust, Wishes};
use crate::import::tool::Tool;

/// One call of `import`. The shape is `lib/contract.d.ts`'s.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "documented where users meet them, in index.d.ts")]
pub struct ImportRequest {
    pub from: Option<String>,
    pub to: Option<String>,
    pub tool: Option<String>,
    pub dry_run: bool,
    pub trust_hash: bool,
    pub skip_missing: bool,
    pub force: bool,
    pub no_lock: bool,
}

impl ImportRequest {
    /// The tool, if one was named.
    ///
    /// # Errors
    /// [`InvalidSettings::Argument`] for a tool that we don't know.
    pub fn tool(&self) -> Result<Option<Tool>, InvalidSettings> {
        let Some(name) = &self.tool else { return Ok(None) };
        let tool = Tool::named(name).ok_or_else(|| {
            let known: Vec<_> = Tool::ALL.into_iter().map(Tool::name).collect();
            InvalidSettings::Argument {
                message: format!(
                    "\"{}\" is none of the tools whose history can be imported: {}",
                    name.escape_debug(),
                    known.join(", ")
                ),
                facts: serde_json::json!({ "tool": name, "known": known }),
            }
        })?;
        Ok(Some(tool))
    }

    /// The collections to read and to write; `usual` is the changelog of every other command.
    ///
    /// # Errors
    /// [`InvalidSettings::Argument`] if they are one and the same.
    pub fn collections(&self, usual: &str) -> Result<(String, String), InvalidSettings> {
        let tool = self.tool()?.unwrap_or(Tool::MigrateMongo);
        let from = self.from.clone().unwrap_or_else(|| tool.collection().to_owned());
        let to = self.to.clone().unwrap_or_else(|| usual.to_owned());
        if from == to {
            return Err(InvalidSettings::Argument {
                message: format!(
                    "\"{}\" can't be imported into itself: --from and --to must differ",
                    from.escape_debug()
                ),
                facts: serde_json::json!({ "source": from, "target": to }),
            });
        }
        Ok((from, to))
    }

    /// What to do.
    pub fn mode(&self) -> Mode {
        match (self.dry_run, self.no_lock) {
            (true, _) => Mode::Preview,
            (false, true) => Mode::Unlocked,
            (false, false) => Mode::Locked,
        }
    }

    /// How to take the history in.
    pub fn wishes(&self) -> Wishes {
        Wishes {
            trust: if self.trust_hash { Trust::Source } else { Trust::Files },
            missing: if self.skip_missing { MissingFiles::LeaveOut } else { MissingFiles::Adopt },
            target: if self.force { Target::MayBeInUse } else { Target::MustBeFresh },
        }
    }
}

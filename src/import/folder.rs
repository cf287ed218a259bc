//! The migrations directory, as other tools name its files. Pure.

use std::collections::HashMap;

use super::tool::Tool;
use crate::migration::{InvalidName, MigrationFile, MigrationName};

/// The migrations directory, by names as other tools record them.
#[derive(Debug)]
pub struct Folder<'a> {
    by_name: HashMap<&'a str, &'a MigrationFile>,
    by_stem: HashMap<&'a str, &'a MigrationFile>,
}

impl<'a> Folder<'a> {
    /// The directory with these files.
    pub fn of(files: &'a [MigrationFile]) -> Self {
        Self {
            by_name: files.iter().map(|file| (file.name.as_str(), file)).collect(),
            by_stem: files.iter().map(|file| (file.name.stem(), file)).collect(),
        }
    }

    /// The file that is meant: by its whole name, by its name without an extension, or under another
    /// extension, as a build leaves it.
    pub fn file(&self, recorded: &str) -> Option<&'a MigrationFile> {
        let name = MigrationName::new(recorded).ok()?;
        let by_stem = |stem: &str| self.by_stem.get(stem).copied();
        self.by_name
            .get(name.as_str())
            .copied()
            .or_else(|| by_stem(name.as_str()))
            .or_else(|| by_stem(stem_of(name.as_str())?))
    }

    /// The name to store, and the file if there is one.
    ///
    /// # Errors
    /// What is recorded is no bare file name.
    pub fn resolve(
        &self,
        recorded: &str,
        tool: Tool,
    ) -> Result<(MigrationName, Option<&'a MigrationFile>), InvalidName> {
        let name = MigrationName::new(recorded)?;
        if let Some(file) = self.file(recorded) {
            return Ok((file.name.clone(), Some(file)));
        }
        let whole = stem_of(name.as_str()).is_some();
        let name =
            if whole { name } else { MigrationName::new(&format!("{name}{}", tool.extension()))? };
        Ok((name, None))
    }
}

/// The part before a migration's extension.
fn stem_of(name: &str) -> Option<&str> {
    EXTENSIONS.iter().find_map(|extension| name.strip_suffix(extension))
}

/// What a migration file's name may end in.
const EXTENSIONS: [&str; 6] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];

//! Names, namespaces, directions and files of migrations: the words every other layer speaks.
//!
//! A [`MigrationName`] is a bare file name and nothing else: whatever reaches the disk, a document
//! or a message has passed through [`MigrationName::new`].

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::checksum::FileChecksum;

/// The bare name of a migration file, extension included, in Unicode normal form C.
///
/// File systems disagree about normal forms (macOS hands out decomposed names), so names compare
/// after normalisation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MigrationName(String);

/// A text that cannot be the name of a migration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" is not a bare file name", .0.escape_debug())]
pub struct InvalidName(pub String);

impl MigrationName {
    /// Accepts a bare file name.
    ///
    /// # Errors
    /// [`InvalidName`] for an empty text, `.`, `..`, or one that holds `/`, `\` or a NUL.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let bare = !matches!(text, "" | "." | "..") && !text.contains(['/', '\\', '\0']);
        match bare {
            // Already in normal form, and most names are.
            true if text.is_ascii() => Ok(Self(text.to_owned())),
            true => Ok(Self(text.nfc().collect())),
            false => Err(InvalidName(text.to_owned())),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without its last extension: two files that share it are one migration twice.
    pub fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(stem, _)| stem)
    }

    /// Sorts by UTF-16 code units, as JavaScript's `sort()` and runners of 1.x do.
    pub fn cmp_code_units(&self, other: &Self) -> std::cmp::Ordering {
        if self.0.is_ascii() && other.0.is_ascii() {
            return self.0.cmp(&other.0);
        }
        self.0.encode_utf16().cmp(other.0.encode_utf16())
    }
}

impl fmt::Display for MigrationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which history an entry belongs to. The default namespace is an absent field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Namespace(Option<String>);

impl Namespace {
    /// The namespace of this name; `None` is the default one.
    pub fn new(name: Option<String>) -> Self {
        Self(name)
    }

    /// Its name, `None` for the default namespace.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Which export of a migration runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// `up`: apply.
    Up,
    /// `down`: revert.
    Down,
}

impl Direction {
    /// The export's name, as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// A migration file on disk.
#[derive(Debug, Clone)]
pub struct MigrationFile {
    /// Its name.
    pub name: MigrationName,
    /// The checksum of its content.
    pub checksum: FileChecksum,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_the_directory_is_refused() {
        for text in ["", ".", "..", "a/b.js", "..\\x.js", "a\0.js"] {
            assert_eq!(MigrationName::new(text), Err(InvalidName(text.to_owned())));
        }
    }

    #[test]
    fn composed_and_decomposed_names_are_the_same_migration() {
        let composed = MigrationName::new("\u{e9}.js").expect("a bare name");
        let decomposed = MigrationName::new("e\u{301}.js").expect("a bare name");
        assert_eq!(composed, decomposed);
    }

    #[test]
    fn order_is_by_utf16_code_units_like_javascript() {
        let emoji = MigrationName::new("\u{1F600}.js").expect("a bare name");
        let private = MigrationName::new("\u{E000}.js").expect("a bare name");
        assert!(emoji.cmp_code_units(&private).is_lt());
        assert!(emoji > private);
    }

    #[test]
    fn the_stem_drops_only_the_last_extension() {
        let name = MigrationName::new("0001-a.b.ts").expect("a bare name");
        assert_eq!(name.stem(), "0001-a.b");
    }
}

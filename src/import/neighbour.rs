//! Another tool's changelog beside ours, and which of the pending files it says are applied. Pure.

use super::folder::Folder;
use super::source::{Source, SourceDocument};
use super::tool::{Reading, Tool};
use crate::migration::{MigrationFile, MigrationName};

/// Another tool's changelog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// Its collection.
    pub collection: String,
    /// Who wrote it.
    pub tool: Tool,
    /// Must an import be told so, because others have written there too?
    pub tool_is_one_of_many: bool,
    /// How many documents are in it, whoever wrote them.
    pub documents: usize,
    /// The pending files that it says are applied.
    pub names: Vec<MigrationName>,
}

/// Do documents count that name a file and are otherwise malformed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubtful {
    /// They do: better to ask than to run something twice.
    Count,
    /// They don't: an import has listed them already.
    Ignore,
}

impl Neighbour {
    /// The command that takes its history over.
    pub fn command(&self) -> String {
        let tool =
            if self.tool_is_one_of_many { format!(" --tool {}", self.tool) } else { String::new() };
        format!("mmk import --from {}{tool}", self.collection)
    }
}

/// All that are among the sources, whatever they know.
pub fn neighbours(
    sources: &[Source],
    files: &[MigrationFile],
    pending: &[MigrationName],
    doubtful: Doubtful,
) -> Vec<Neighbour> {
    let folder = Folder::of(files);
    let found = sources.iter().flat_map(|Source { collection, documents }| {
        let tools = Tool::detect(documents);
        let tool_is_one_of_many = tools.len() > 1;
        let folder = &folder;
        tools.into_iter().map(move |tool| {
            let mut names = applied(tool, documents, folder, doubtful);
            names.retain(|name| pending.contains(name));
            let (collection, documents) = (collection.clone(), documents.len());
            Neighbour { collection, tool, tool_is_one_of_many, documents, names }
        })
    });
    found.collect()
}

/// The changelog that knows most of the `pending` files; `None` if none knows any.
pub fn neighbour(
    sources: &[Source],
    files: &[MigrationFile],
    pending: &[MigrationName],
    doubtful: Doubtful,
) -> Option<Neighbour> {
    let found = neighbours(sources, files, pending, doubtful).into_iter();
    found.filter(|found| !found.names.is_empty()).max_by_key(|found| found.names.len())
}

/// The files that the documents say are applied, in order.
fn applied(
    tool: Tool,
    documents: &[SourceDocument],
    folder: &Folder<'_>,
    doubtful: Doubtful,
) -> Vec<MigrationName> {
    let named = documents.iter().filter_map(|document| match tool.read(document) {
        Reading::Applied(past) => Some(past.recorded),
        Reading::Malformed { recorded, .. } if doubtful == Doubtful::Count => recorded,
        Reading::Malformed { .. } | Reading::NotApplied(_) => None,
    });
    let mut names: Vec<MigrationName> =
        named.filter_map(|recorded| Some(folder.file(&recorded)?.name.clone())).collect();
    names.sort_by(MigrationName::cmp_code_units);
    names.dedup();
    names
}

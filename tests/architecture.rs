//! The rules of the source tree: layers import downwards only, and each outside thing has one door.
//!
//! What is read is text, not syntax: every `crate::…` and `super::…` path outside comments, strings
//! and inline tests, wherever it stands. The layers are those that `src/lib.rs` documents.

use std::fs;
use std::path::{Path, PathBuf};

/// A module and its text.
struct Source {
    /// `lock::mongo`; empty for the crate's root.
    module: String,
    text: String,
}

#[test]
fn the_source_tree_keeps_its_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let sources: Vec<Source> = files_under(&root).iter().map(|path| read(&root, path)).collect();
    let layers = Layers::of(&sources);
    assert!(layers.0.len() > 20, "the table in src/lib.rs was not understood");
    let broken: Vec<String> = sources.iter().flat_map(|source| layers.faults(source)).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// The modules that the crate's root assigns to layers.
struct Layers(Vec<(String, u8)>);

impl Layers {
    fn of(sources: &[Source]) -> Self {
        let root = sources.iter().find(|source| source.module.is_empty()).expect("src/lib.rs");
        let rows = root.text.lines().filter_map(|line| line.strip_prefix("//! | "));
        let layers = rows.filter_map(|row| {
            let digit = row.chars().next()?.to_digit(10)?;
            Some((u8::try_from(digit).ok()?, row))
        });
        let named = layers.flat_map(|(layer, row)| {
            let names = row.split('`').skip(1).step_by(2);
            names.map(move |name| (name.to_owned(), layer))
        });
        Self(named.collect())
    }

    /// The layer of a path such as `lock::store::Attempt`. What no row names is a door of its parts
    /// (`lock`) or belongs to the module that holds it (`lock::mongo_pipeline` to `lock::mongo`).
    fn layer(&self, path: &str) -> Option<u8> {
        let named = |module: &str| {
            let belongs = path == module
                || path.starts_with(&format!("{module}::"))
                || path.starts_with(&format!("{module}_"));
            belongs.then_some(module.len())
        };
        let found = self.0.iter().filter_map(|(module, layer)| Some((named(module)?, *layer)));
        found.max_by_key(|(length, _)| *length).map(|(_, layer)| layer)
    }

    fn faults(&self, source: &Source) -> Vec<String> {
        let code = code_of(&source.text);
        let arrows = self.arrows(source, &code);
        let doors = DOORS.iter().filter_map(|door| door.fault(source, &code));
        arrows.into_iter().chain(doors).collect()
    }

    fn arrows(&self, source: &Source, code: &str) -> Vec<String> {
        if self.is_door(&source.module) {
            return Vec::new();
        }
        let Some(own) = self.layer(&source.module) else {
            return vec![format!("src/lib.rs assigns no layer to {}", source.module)];
        };
        let paths = paths_in(code, &source.module);
        let upward = paths.iter().filter_map(|path| {
            let other = self.layer(path)?;
            (other > own)
                .then(|| format!("{} (layer {own}) uses {path} (layer {other})", source.module))
        });
        upward.collect()
    }

    /// Is this module nothing but the parent of modules with layers?
    fn is_door(&self, module: &str) -> bool {
        let inside = format!("{module}::");
        module.is_empty()
            || (self.layer(module).is_none()
                && self.0.iter().any(|(name, _)| name.starts_with(&inside)))
    }
}

/// Something outside that only some modules may touch.
struct Door {
    words: &'static [&'static str],
    open: fn(&str) -> bool,
    rule: &'static str,
}

const DOORS: [Door; 4] = [
    Door {
        words: &["napi::", "napi_derive::", "#[napi"],
        open: |module| module == "bridge" || module.starts_with("bridge::"),
        rule: "only the bridge knows Node",
    },
    Door {
        words: &["mongodb::", "bson::"],
        open: |module| {
            let last = module.rsplit("::").next().unwrap_or(module);
            let adapter = module == "connect" || module.starts_with("connect::");
            adapter || last == "mongo" || last.starts_with("mongo_")
        },
        rule: "only the adapters know the driver",
    },
    Door {
        words: &["Instant::now", "SystemTime", "time::Instant", "boot_time::"],
        open: |module| module == "clock",
        rule: "only the clock reads time",
    },
    Door {
        words: &["println!", "eprintln!", "print!", "eprint!", "dbg!", "io::stdout", "io::stderr"],
        // When the event loop is blocked, nobody else can.
        open: |module| module == "signals",
        rule: "the core prints nothing",
    },
];

impl Door {
    fn fault(&self, source: &Source, code: &str) -> Option<String> {
        if (self.open)(&source.module) {
            return None;
        }
        let word = self.words.iter().find(|word| mentions(code, word))?;
        Some(format!("{} mentions {word}: {}", source.module, self.rule))
    }
}

/// Does the word stand there and not as the end of a longer one?
fn mentions(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let rust = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    rust.chain(folders.iter().flat_map(|folder| files_under(folder))).collect()
}

fn read(root: &Path, path: &Path) -> Source {
    let inside = path.strip_prefix(root).expect("a path under src").with_extension("");
    let mut names: Vec<_> =
        inside.iter().map(|name| name.to_str().expect("a plain name").to_owned()).collect();
    if names.last().is_some_and(|last| last == "mod" || last == "lib") {
        names.pop();
    }
    let text = fs::read_to_string(path).expect("a readable file");
    Source { module: names.join("::"), text }
}

/// The text without comments, strings and inline tests, which end every file that has them.
fn code_of(text: &str) -> String {
    let product = text.split("#[cfg(test)]").next().unwrap_or(text);
    let (mut code, mut rest) = (String::new(), product);
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        rest = if from.starts_with("//") {
            from.find('\n').map_or("", |end| &from[end..])
        } else if from.starts_with('"') && !before.ends_with('\'') {
            after_string(&from[1..])
        } else {
            &from[1..]
        };
    }
    code + rest
}

/// What follows the string that has just begun.
fn after_string(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|letter| {
        let closes = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        closes
    });
    end.map_or("", |end| &text[end + 1..])
}

/// Every path to a module of this crate, from its root: `lock::store::Attempt`.
fn paths_in(code: &str, module: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (start, base) in [("crate::", String::new()), ("super::", parent(module))] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
                continue;
            }
            // A second `super` is found as the part of a path that begins with the first.
            let base = if code[..at].ends_with("super::") { parent(&base) } else { base.clone() };
            expand(&base, &code[at + start.len()..], &mut paths);
        }
    }
    paths
}

/// Follows one path, and all branches of one that ends in braces.
fn expand(base: &str, rest: &str, paths: &mut Vec<String>) {
    let length = rest.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
    let (segment, tail) = rest.split_at(length.unwrap_or(rest.len()));
    let joined = [base, segment.trim_end_matches("::")];
    let path: Vec<&str> = joined.into_iter().filter(|part| !part.is_empty()).collect();
    let path = path.join("::");
    match tail.strip_prefix('{') {
        Some(group) if segment.is_empty() || segment.ends_with("::") => {
            for branch in branches(group) {
                expand(&path, branch.trim_start(), paths);
            }
        }
        Some(_) | None => paths.push(path),
    }
}

/// The parts between the commas of a group, up to its closing brace.
fn branches(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_u32, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth > 0 => {}
            ',' | '}' => {
                parts.push(&group[from..at]);
                from = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts
}

fn parent(module: &str) -> String {
    module.rsplit_once("::").map_or_else(String::new, |(parent, _)| parent.to_owned())
}

fn planted(module: &str, text: &str) -> Vec<String> {
    let root = Source {
        module: String::new(),
        text: "//! | 0 values | [`fault`], [`lock::lease`] |\n//! | 2 ports | [`lock::store`], \
            [`clock`] |\n//! | 3 drivers | [`runner`] |\n//! | 4 adapters | [`lock::mongo`] |\n//! \
            | 5 edges | `bridge` |\n"
            .to_owned(),
    };
    let source = Source { module: module.to_owned(), text: text.to_owned() };
    Layers::of(&[root]).faults(&source)
}

#[test]
fn a_planted_upward_arrow_is_found_in_every_spelling() {
    for text in [
        "use crate::runner::Runner;",
        "use super::super::runner::Runner;",
        "use crate::{fault::StoreFault, runner::{self, Runner}};",
        "use crate::{\n    fault::StoreFault,\n    lock::mongo::MongoLockStore,\n};",
        "use super::mongo::MongoLockStore;",
        "use super::{lease::Holder, mongo_pipeline};",
        "fn f() { crate::runner::run() }",
        "fn f() { let _ = \"// no comment\"; crate::runner::run() }",
        "fn f(c: char) { if c == '\"' { crate::runner::run() } }",
        "pub(in crate::lock) fn f() -> crate::bridge::Core {}",
    ] {
        assert!(!planted("lock::store", text).is_empty(), "{text}");
    }
}

#[test]
fn what_is_below_or_beside_or_only_said_is_no_upward_arrow() {
    for text in [
        "use super::lease::Holder;\nuse crate::{clock::Clock, fault::StoreFault};",
        "/// See [`crate::runner`].\npub struct Attempt;",
        "const HINT: &str = \"crate::runner::run\";",
        "const URI: &str = \"mongodb://a \\\" crate::runner \\\\\";",
        "const LONG: &str = \"one\n    crate::runner::run\n    two\";",
        "pub struct A;\n#[cfg(test)]\nmod tests { use crate::runner::Runner; }",
    ] {
        assert_eq!(planted("lock::store", text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_planted_breach_of_each_door_is_found() {
    for text in [
        "use napi::bindgen_prelude::Buffer;",
        "#[napi]\npub struct Core;",
        "use mongodb::Collection;",
        "fn f(d: mongodb::bson::Document) {}",
        "fn f() { std::time::Instant::now(); }",
        "use std::time::{Duration, SystemTime};",
        "use tokio::time::Instant;",
        "fn f() { println!(\"x\") }",
    ] {
        assert!(!planted("runner", text).is_empty(), "{text}");
    }
    assert!(planted("bridge::host", "use napi::Env;").is_empty());
    assert!(planted("lock::mongo_pipeline", "use mongodb::bson::doc;").is_empty());
    assert!(planted("clock", "fn f() { tokio::time::Instant::now(); }").is_empty());
}

#[test]
fn a_module_without_a_layer_is_reported() {
    assert_eq!(planted("helpers", "pub fn f() {}").len(), 1);
    assert_eq!(planted("lock", "pub mod store;"), Vec::<String>::new());
}

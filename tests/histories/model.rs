//! What a person expects of a history, said without plans, claims and filters.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter::Peekable;

use mongo_migrate_kit::migration::{Direction, MigrationName};
use mongo_migrate_kit::plan::{MarkAs, Request, Scope, Selection};

use crate::{Fate, Files, Ran};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    Applied,
    Reverted,
    Failed,
    Running(Direction),
}

/// What a person knows of one migration that has an entry.
#[derive(Debug, Clone)]
pub struct Known {
    pub state: State,
    pub batch: Option<i64>,
    /// Its place among all that was ever applied.
    place: u64,
    /// The edition that was applied or accepted.
    pub edition: u64,
    /// Its `down` has thrown.
    blemished: bool,
    /// How often its entry has changed.
    pub changes: i64,
}

impl Known {
    /// Has its `up` been done, whatever has become of its `down`?
    pub fn stands(&self) -> bool {
        matches!(self.state, State::Applied | State::Running(Direction::Down))
    }
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub files: Files,
    pub known: BTreeMap<String, Known>,
    /// Is the next migration claimed together with the record of the one before?
    pub claims_ahead: bool,
    places: u64,
    /// How the last body ended.
    last: Fate,
}

/// The run is refused, and nothing has happened.
#[derive(Debug, PartialEq)]
pub struct Refused;

impl Model {
    fn next_batch(&self) -> i64 {
        self.known.values().filter_map(|known| known.batch).max().unwrap_or(0) + 1
    }

    fn state(&self, name: &str) -> Option<State> {
        self.known.get(name).map(|known| known.state)
    }

    /// What stands, the latest first.
    fn standing(&self) -> Vec<String> {
        let mut names: Vec<_> = self.known.iter().filter(|(_, known)| known.stands()).collect();
        names.sort_by_key(|(_, known)| Reverse(known.place));
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }

    fn to_apply(&self, scope: &Scope, force: bool) -> Result<Vec<String>, Refused> {
        if let Scope::Through(named) | Scope::File(named) = scope
            && !self.files.contains_key(named.as_str())
        {
            return Err(Refused);
        }
        let in_scope = |file: &&String| match scope {
            Scope::All => true,
            Scope::Through(last) => file.as_str() <= last.as_str(),
            Scope::File(only) => file.as_str() == only.as_str(),
        };
        let pending = |file: &&String| force || self.state(file) != Some(State::Applied);
        let names: Vec<String> =
            self.files.keys().filter(in_scope).filter(pending).cloned().collect();
        let torn = |file: &String| self.state(file) == Some(State::Running(Direction::Down));
        if names.iter().any(torn) { Err(Refused) } else { Ok(names) }
    }

    fn to_revert(&self, selection: &Selection, force: bool) -> Result<Vec<String>, Refused> {
        let standing = self.standing();
        let of_batch = |batch: Option<i64>| -> Vec<String> {
            standing.iter().filter(|name| self.known[*name].batch == batch).cloned().collect()
        };
        let place = |named: &MigrationName| {
            standing.iter().position(|name| name == named.as_str()).ok_or(Refused)
        };
        let names = match selection {
            Selection::LastBatch => {
                let last = standing.iter().filter_map(|name| self.known[name].batch).max();
                last.map_or_else(Vec::new, |last| of_batch(Some(last)))
            }
            Selection::Batch(batch) => {
                let names = of_batch(Some(*batch));
                if names.is_empty() {
                    return Err(Refused);
                }
                names
            }
            Selection::Steps(count) => standing.iter().take(*count as usize).cloned().collect(),
            Selection::To(named) => standing[..place(named)?].to_vec(),
            Selection::File(named) => vec![standing[place(named)?].clone()],
        };
        let usable = |name: &String| match self.files.get(name) {
            None => false,
            Some(edition) => force || *edition == self.known[name].edition,
        };
        if names.iter().all(usable) { Ok(names) } else { Err(Refused) }
    }

    /// What `request` comes to: the bodies that run, in order.
    pub fn expect(&mut self, request: &Request, fates: &[Fate]) -> Result<Ran, Refused> {
        let mut fates = fates.iter().copied().cycle().peekable();
        let mut ran = Vec::new();
        match request {
            Request::Up { scope, step, force } => {
                let (names, base) = (self.to_apply(scope, *force)?, self.next_batch());
                let batch = |index| base + if *step { index as i64 } else { 0 };
                for (index, name) in names.iter().enumerate() {
                    if !self.body(name, Direction::Up, batch(index), &mut fates, &mut ran) {
                        break;
                    }
                    if let Some(next) = names.get(index + 1)
                        && !self.passes_on(next, Direction::Up, batch(index + 1), &mut fates)
                    {
                        break;
                    }
                }
            }
            Request::Down { selection, force } => {
                let names = self.to_revert(selection, *force)?;
                for (index, name) in names.iter().enumerate() {
                    if !self.body(name, Direction::Down, 0, &mut fates, &mut ran) {
                        break;
                    }
                    if let Some(next) = names.get(index + 1)
                        && !self.passes_on(next, Direction::Down, 0, &mut fates)
                    {
                        break;
                    }
                }
            }
            Request::Redo { file } => {
                let selection = file.clone().map_or(Selection::Steps(1), Selection::File);
                for name in self.to_revert(&selection, true)? {
                    if self.body(&name, Direction::Down, 0, &mut fates, &mut ran)
                        && self.last == Fate::Done
                    {
                        let batch = self.next_batch();
                        self.body(&name, Direction::Up, batch, &mut fates, &mut ran);
                    }
                }
            }
            Request::Mark { name, state, .. } => self.mark(name.as_str(), *state)?,
        }
        Ok(ran)
    }

    /// One body; is it done?
    fn body(
        &mut self,
        name: &str,
        direction: Direction,
        batch: i64,
        fates: &mut impl Iterator<Item = Fate>,
        ran: &mut Ran,
    ) -> bool {
        let fate = fates.next().expect("fates repeat");
        if fate == Fate::DiesBefore {
            return false;
        }
        ran.push((name.to_owned(), direction));
        self.claim(name, direction, batch);
        let known = self.entry(name);
        known.state = match (fate, direction) {
            (Fate::Dies, _) => State::Running(direction),
            (Fate::Done | Fate::DiesAfter | Fate::ToldToEnd, Direction::Up) => State::Applied,
            (Fate::Done | Fate::DiesAfter | Fate::ToldToEnd, Direction::Down) => State::Reverted,
            (Fate::Throws, Direction::Up) => State::Failed,
            (Fate::Throws, Direction::Down) => State::Applied,
            (Fate::DiesBefore, _) => unreachable!("it has not begun"),
        };
        known.blemished = (fate, direction) == (Fate::Throws, Direction::Down);
        known.changes += i64::from(fate != Fate::Dies);
        if known.state == State::Applied && direction == Direction::Up {
            self.take_place(name);
        }
        self.last = fate;
        matches!(fate, Fate::Done | Fate::DiesAfter | Fate::ToldToEnd)
    }

    fn claim(&mut self, name: &str, direction: Direction, batch: i64) {
        let edition = self.files[name];
        let known = self.entry(name);
        known.changes += 1;
        known.blemished = false;
        known.state = State::Running(direction);
        if direction == Direction::Up {
            (known.batch, known.edition) = (Some(batch), edition);
        }
    }

    /// What becomes of the `next` migration when the one before is recorded; does the run go on?
    fn passes_on(
        &mut self,
        next: &str,
        direction: Direction,
        batch: i64,
        fates: &mut Peekable<impl Iterator<Item = Fate>>,
    ) -> bool {
        let dies = self.last == Fate::DiesAfter || fates.peek() == Some(&Fate::DiesBefore);
        match (self.claims_ahead, self.last) {
            (false, last) => last == Fate::Done,
            (true, Fate::ToldToEnd) => {
                // Claimed and taken back: nothing but its version tells.
                if let Some(known) = self.known.get_mut(next) {
                    known.changes += 2;
                }
                false
            }
            (true, _) if dies => {
                self.claim(next, direction, batch);
                false
            }
            (true, last) => last == Fate::Done,
        }
    }

    fn mark(&mut self, name: &str, state: MarkAs) -> Result<(), Refused> {
        let (file, batch) = (self.files.get(name).copied(), self.next_batch());
        match (state, file, self.known.get_mut(name)) {
            (MarkAs::Applied, None, _) | (MarkAs::Pending, None, None) => return Err(Refused),
            (MarkAs::Pending, Some(_), None) => {}
            (MarkAs::Pending, _, Some(known)) => {
                if known.state != State::Reverted {
                    (known.state, known.blemished) = (State::Reverted, false);
                    known.changes += 1;
                }
            }
            (MarkAs::Applied, Some(edition), Some(known)) if known.stands() => {
                let same = known.edition == edition && !known.blemished;
                if known.state != State::Applied || !same {
                    (known.state, known.edition) = (State::Applied, edition);
                    (known.blemished, known.changes) = (false, known.changes + 1);
                }
            }
            (MarkAs::Applied, Some(edition), _) => {
                let known = self.entry(name);
                (known.state, known.batch) = (State::Applied, Some(batch));
                (known.edition, known.blemished) = (edition, false);
                known.changes += 1;
                self.take_place(name);
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &str) -> &mut Known {
        self.known.entry(name.to_owned()).or_insert(Known {
            state: State::Running(Direction::Up),
            batch: None,
            place: 0,
            edition: 0,
            blemished: false,
            changes: 0,
        })
    }

    fn take_place(&mut self, name: &str) {
        self.places += 1;
        let place = self.places;
        self.entry(name).place = place;
    }
}

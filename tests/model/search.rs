//! Breadth-first search through every state that can be reached, with the way back to a fault.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// Something that can go on in several ways.
pub trait Model: Clone + Hash {
    /// One thing that can happen.
    type Action: Copy + Debug;

    /// Everything that can happen next.
    fn actions(&self) -> Vec<Self::Action>;

    /// Lets it happen; an error names the promise that it broke.
    fn apply(&mut self, action: Self::Action) -> Result<(), String>;
}

/// What a search has found.
#[derive(Debug)]
pub enum Found {
    /// Every state keeps every promise.
    Sound { states: usize },
    /// One does not, and this is the shortest way there.
    Broken { promise: String, way: Vec<String> },
}

/// Visits every state. `limit` is a safeguard against a model that has grown beyond all patience.
pub fn search<M: Model>(start: M, limit: usize) -> Found {
    let root = fingerprint(&start);
    let mut seen: HashMap<u128, Option<(u128, M::Action)>> = HashMap::from([(root, None)]);
    let mut frontier = VecDeque::from([(root, start)]);
    while let Some((from, state)) = frontier.pop_front() {
        for action in state.actions() {
            let mut next = state.clone();
            if let Err(promise) = next.apply(action) {
                return Found::Broken { promise, way: way_to(&seen, from, action) };
            }
            let print = fingerprint(&next);
            if let Entry::Vacant(vacant) = seen.entry(print) {
                vacant.insert(Some((from, action)));
                frontier.push_back((print, next));
            }
        }
        assert!(seen.len() <= limit, "more than {limit} states");
    }
    Found::Sound { states: seen.len() }
}

fn way_to<A: Copy + Debug>(
    seen: &HashMap<u128, Option<(u128, A)>>,
    mut from: u128,
    last: A,
) -> Vec<String> {
    let mut way = vec![format!("{last:?}")];
    while let Some(Some((parent, action))) = seen.get(&from) {
        way.push(format!("{action:?}"));
        from = *parent;
    }
    way.reverse();
    way
}

/// What stands for a state that has been seen. Two different ones among a million have the same 128
/// bits with a chance of less than one in 10^26.
fn fingerprint(state: &impl Hash) -> u128 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    let high = u128::from(hasher.finish());
    hasher.write_u8(1);
    high << 64 | u128::from(hasher.finish())
}

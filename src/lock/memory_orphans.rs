//! Orphans in memory, for simulations and tests: what runs left running is told to it.

use std::sync::{Arc, Mutex};

use super::lease::RunId;
use super::memory::{locked, refused};
use super::orphans::{Operation, Orphans};
use crate::fault::StoreFault;

/// The operations of a server that is no server. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryOrphans(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    operations: Vec<Planted>,
    planted: u64,
    indexes: Vec<String>,
    blind: bool,
}

#[derive(Debug)]
struct Planted {
    run: RunId,
    operation: Operation,
    nature: Nature,
}

/// What an operation makes of being told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// It is gone at once.
    Obedient,
    /// It goes on.
    Stubborn,
}

impl MemoryOrphans {
    /// A server where nothing runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a run have left something behind.
    pub fn plant(&self, run: &RunId, description: &str, nature: Nature) {
        let mut running = locked(&self.0);
        running.planted += 1;
        let handle = running.planted.to_string();
        let operation = Operation { handle, description: description.to_owned() };
        running.operations.push(Planted { run: run.clone(), operation, nature });
    }

    /// Lets an index build go on that nobody waits for.
    pub fn plant_index(&self, name: &str) {
        locked(&self.0).indexes.push(name.to_owned());
    }

    /// From now on nobody may look.
    pub fn forbid(&self) {
        locked(&self.0).blind = true;
    }
}

impl Orphans for MemoryOrphans {
    async fn find(&self, run: &RunId) -> Result<Vec<Operation>, StoreFault> {
        let running = locked(&self.0);
        if running.blind {
            return Err(refused());
        }
        let found = running.operations.iter().filter(|planted| planted.run == *run);
        Ok(found.map(|planted| planted.operation.clone()).collect())
    }

    async fn stop(&self, operation: &Operation) -> Result<(), StoreFault> {
        let mut running = locked(&self.0);
        running.operations.retain(|planted| {
            planted.operation.handle != operation.handle || planted.nature == Nature::Stubborn
        });
        Ok(())
    }

    async fn unfinished_indexes(&self) -> Result<Vec<String>, StoreFault> {
        let running = locked(&self.0);
        if running.blind { Err(refused()) } else { Ok(running.indexes.clone()) }
    }
}

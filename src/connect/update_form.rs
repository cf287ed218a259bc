//! In which form updates are put to a server.
//!
//! MongoDB computes updates from pipelines, with its own clock and the document as it stands. Amazon
//! DocumentDB is known to refuse them. There the same changes are put in plain update operators: the
//! document is read, what becomes of it is decided here by the time that the server tells, and the
//! write names what was read as its condition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fault::{FaultKind, StoreFault};

/// What is known of a server: pipelines, until it refuses the first. Clones know the same.
#[derive(Debug, Clone, Default)]
pub struct UpdateForm {
    operators: Arc<AtomicBool>,
}

impl UpdateForm {
    /// The form for a server that is known to take no pipelines.
    pub fn operators() -> Self {
        Self { operators: Arc::new(AtomicBool::new(true)) }
    }

    /// Has the server refused a pipeline?
    pub fn is_operators(&self) -> bool {
        self.operators.load(Ordering::Relaxed)
    }

    /// Takes note of why a write was refused: is it worth sending again, in operators?
    pub fn learns_from(&self, fault: &StoreFault) -> bool {
        let refused = fault.kind == FaultKind::Incapable;
        if refused {
            self.operators.store(true, Ordering::Relaxed);
        }
        refused
    }
}

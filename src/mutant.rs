//! Faults planted in the core on purpose, to prove that the torture finds them.
//!
//! They exist behind the cargo feature `mutants` alone, which no published addon is built with; there
//! `MMK_MUTANT` plants one by name. Without the feature nothing is planted, and the compiler knows.

/// One fault. `docs/torture.md` says what must catch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Transactions don't touch the fence.
    NoFence,
    /// They match the fence and write nothing to it.
    NoopFence,
    /// Renewals don't wait for a majority.
    BeatsW1,
    /// `expiresAt` alone decides, whoever wrote the lease.
    ExpiresOnly,
    /// What past runs left on the server is not looked for.
    NoCleanup,
    /// Entries are settled whoever has them.
    NoPrecondition,
    /// The insert of an acquire depends on a condition.
    GuardedInsert,
}

impl Mutant {
    /// Is this fault in force?
    #[cfg(feature = "mutants")]
    pub fn is_planted(self) -> bool {
        let name = match self {
            Self::NoFence => "no-fence",
            Self::NoopFence => "noop-fence",
            Self::BeatsW1 => "beats-w1",
            Self::ExpiresOnly => "expires-only",
            Self::NoCleanup => "no-cleanup",
            Self::NoPrecondition => "no-precondition",
            Self::GuardedInsert => "guarded-insert",
        };
        std::env::var("MMK_MUTANT").is_ok_and(|planted| planted == name)
    }

    /// Is this fault in force? Never, in this build.
    #[cfg(not(feature = "mutants"))]
    pub const fn is_planted(self) -> bool {
        false
    }
}

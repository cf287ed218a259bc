//! The core of mongo-migrate-kit: the lock protocol, the heartbeat and the sequencing of MongoDB
//! migrations. Migration bodies are somebody else's: the core awaits them through the [`host`] port,
//! which the Node binding (`bridge`, behind the feature `napi`) implements.
//!
//! Layers import downwards only, and a test sees to it:
//!
//! | layer | modules |
//! |---|---|
//! | 0 values | [`mutant`], [`migration`], [`checksum`], [`fault`], [`event`], [`lock::lease`], [`lock::timing`], [`lock::proof`], [`changelog::entry`], [`import::source`] |
//! | 1 ports | [`lock::store`], [`lock::orphans`], [`changelog::store`], [`clock`], [`host`] |
//! | 2 pure logic | [`plan`], [`status`], [`lock::protocol`], [`lock::rules`], `lock::document`, [`lock::wait`], [`import::tool`], [`import::folder`], [`import::intake`], [`import::neighbour`] |
//! | 3 drivers | [`lock::guard`], [`lock::keeper`], [`runner`], [`import::adopt`], [`metrics`] |
//! | 4 adapters | [`connect`], [`files`], [`lock::mongo`], [`lock::mongo_orphans`], [`lock::memory`], [`lock::memory_orphans`], [`changelog::mongo`], [`changelog::memory`], `import::mongo` |
//! | 5 edges | [`config`], [`error`], [`engine`], `signals`, `bridge` |

#[cfg(feature = "napi")]
mod bridge;
pub mod changelog;
pub mod checksum;
pub mod clock;
pub mod config;
pub mod connect;
pub mod engine;
pub mod error;
pub mod event;
pub mod fault;
pub mod files;
pub mod host;
pub mod import;
pub mod lock;
pub mod metrics;
pub mod migration;
pub mod mutant;
pub mod plan;
pub mod runner;
#[cfg(feature = "napi")]
mod signals;
pub mod status;

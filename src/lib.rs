//! The core of mongo-migrate-kit: the lock protocol, the heartbeat and the sequencing of MongoDB
//! migrations. Migration bodies are somebody else's: the core awaits them through the [`host`] port,
//! which the Node binding (`bridge`, behind the feature `napi`) implements.
//!
//! Layers import downwards only, and a test sees to it:
//!
//! | layer | modules |
//! |---|---|
//! | 0 values | [`migration`], [`checksum`], [`fault`], [`event`], [`lock::lease`], [`lock::timing`], [`lock::proof`], [`changelog::entry`] |
//! | 1 ports | [`lock::store`], [`changelog::store`], [`clock`], [`host`] |
//! | 2 pure logic | [`plan`], [`status`], [`lock::protocol`], [`lock::wait`] |
//! | 3 drivers | [`lock::keeper`], [`runner`], [`metrics`] |
//! | 4 adapters | [`connect`], [`files`], [`lock::mongo`], [`lock::memory`], [`changelog::mongo`], [`changelog::memory`] |
//! | 5 edges | [`config`], [`error`], [`engine`], `bridge` |

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
pub mod lock;
pub mod metrics;
pub mod migration;
pub mod plan;
pub mod runner;
pub mod status;

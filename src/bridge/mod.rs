//! The Node binding: carries requests in, replies out, and calls back. No logic.
//!
//! Everything crosses as JSON text in the shapes of `lib/contract.d.ts` (BSON commands as bytes): one
//! copy of the shapes on each side, no limit on their size, and no value of a user's is ever touched.
//! Panics in the async functions below become rejections.

mod host;

use std::sync::Arc;

use napi::bindgen_prelude::{Error, Result};
use napi_derive::napi;
use serde::Serialize;
use serde_json::json;

use crate::config::{RunRequest, Settings};
use crate::engine::Engine;
use crate::error::Failed;

use host::{Callback, NodeHost};

/// The core of one kit.
#[napi]
pub struct Core {
    engine: Engine,
}

#[napi]
impl Core {
    /// Takes `Settings`.
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: String) -> Result<Self> {
        let settings: Settings = parse(&settings)?;
        Ok(Self { engine: Engine::new(settings) })
    }

    /// Resolves to `Reply<Server>`.
    #[napi]
    pub async fn connect(&self) -> Result<String> {
        reply(self.engine.connect().await)
    }

    /// Resolves to `Reply<StatusReport>`.
    #[napi]
    pub async fn status(&self) -> Result<String> {
        reply(self.engine.status().await)
    }

    /// Resolves to `Reply<Holder | null>`.
    #[napi]
    pub async fn lock(&self) -> Result<String> {
        reply(self.engine.lock().await)
    }

    /// Resolves to `Reply<Holder | null>`: what was removed.
    #[napi]
    pub async fn force_release(&self, owner: Option<String>) -> Result<String> {
        reply(self.engine.force_release(owner).await)
    }

    /// Takes a `RunRequest` and the function that reaches the `Host`; resolves to `Reply<RunReport>`.
    ///
    /// All calls of one run arrive in the order in which they were made, and all of them have
    /// arrived before the promise settles.
    #[napi(
        ts_args_type = "request: string, callback: (kind: string, json: string, bytes?: Buffer | null) => Promise<string>"
    )]
    pub async fn run(&self, request: String, callback: Callback) -> Result<String> {
        let request: RunRequest = parse(&request)?;
        let host = Arc::new(NodeHost::new(callback));
        let outcome = self.engine.run(request, Arc::clone(&host)).await;
        host.flush().await;
        reply(outcome)
    }

    /// Closes the connection.
    #[napi]
    pub async fn disconnect(&self) {
        self.engine.disconnect().await;
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::from_reason(error.to_string()))
}

fn reply<T: Serialize>(outcome: std::result::Result<T, Failed>) -> Result<String> {
    let reply = match outcome {
        Ok(value) => json!({ "ok": true, "value": value }),
        Err(Failed { error, results }) => {
            json!({ "ok": false, "error": error, "results": results })
        }
    };
    serde_json::to_string(&reply).map_err(|error| Error::from_reason(error.to_string()))
}

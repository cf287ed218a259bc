//! The Node binding: carries requests in, replies out, and calls back. No logic.
//!
//! Everything crosses as JSON text in the shapes of `lib/contract.d.ts` (BSON commands as bytes): one
//! copy of the shapes on each side, no limit on their size, and no value of a user's is ever touched.
//! Panics in the futures below become rejections.
//!
//! No future borrows its `Core`: the thread whose object that is may end while the future is at work, as
//! long as another thread keeps the runtime alive.

mod host;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::{Error, PromiseRaw, Result, block_on, spawn};
use napi_derive::napi;
use serde::Serialize;
use serde_json::json;

use crate::config::import::ImportRequest;
use crate::config::{RunRequest, Settings};
use crate::engine::Engine;
use crate::error::Failed;
use crate::signals::{self, CommandLine};

use host::{Callback, NodeHost};

/// The core of one kit.
#[napi]
pub struct Core {
    engine: Arc<Engine>,
    /// Set when a command line, and not an app, runs us.
    command_line: OnceLock<Arc<CommandLine>>,
}

/// The first form of `Reply<T>`: written as it is, for a status can have thousands of rows.
#[derive(Serialize)]
struct Done<'a, T> {
    ok: bool,
    value: &'a T,
}

#[napi]
impl Core {
    /// Takes `Settings`.
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: String) -> Result<Self> {
        let settings: Settings = parse(&settings)?;
        Ok(Self { engine: Arc::new(Engine::new(settings)), command_line: OnceLock::new() })
    }

    /// Resolves to `Reply<Server>`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn connect<'env>(&self, env: &'env Env) -> Result<PromiseRaw<'env, String>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move { reply(engine.connect().await) })
    }

    /// Resolves to `Reply<StatusReport>`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn status<'env>(&self, env: &'env Env) -> Result<PromiseRaw<'env, String>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move { reply(engine.status().await) })
    }

    /// Resolves to `Reply<Neighbour[]>`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn neighbours<'env>(&self, env: &'env Env) -> Result<PromiseRaw<'env, String>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move { reply(engine.neighbours().await) })
    }

    /// Resolves to `Reply<Holder | null>`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn lock<'env>(&self, env: &'env Env) -> Result<PromiseRaw<'env, String>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move { reply(engine.lock().await) })
    }

    /// Resolves to `Reply<Holder | null>`: what was removed.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn force_release<'env>(
        &self,
        env: &'env Env,
        owner: Option<String>,
    ) -> Result<PromiseRaw<'env, String>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move { reply(engine.force_release(owner).await) })
    }

    /// Takes a `RunRequest` and the function that reaches the `Host`; resolves to `Reply<RunReport>`.
    ///
    /// All calls of one run arrive in the order in which they were made, and all of them have
    /// arrived before the promise settles.
    #[napi(
        ts_args_type = "request: string, callback: (kind: string, json: string, settle?: Buffer | null, fence?: Buffer | null) => Promise<string>",
        ts_return_type = "Promise<string>"
    )]
    pub fn run<'env>(
        &self,
        env: &'env Env,
        request: String,
        callback: Callback,
    ) -> Result<PromiseRaw<'env, String>> {
        let (engine, command_line) = (Arc::clone(&self.engine), self.command_line.get().cloned());
        env.spawn_future(async move {
            let request: RunRequest = parse(&request)?;
            let host = Arc::new(NodeHost::new(callback));
            let outcome = engine.run(request, Arc::clone(&host)).await;
            match command_line {
                Some(command_line) => {
                    command_line.hand_over(host.flush(), outcome.as_ref().err()).await
                }
                None => host.flush().await,
            }
            reply(outcome)
        })
    }

    /// Takes what [`Core::run`] takes, does nothing of it, and resolves to `Reply<StatusRow[]>`: what
    /// would run, in order.
    #[napi(
        ts_args_type = "request: string, callback: (kind: string, json: string, settle?: Buffer | null, fence?: Buffer | null) => Promise<string>",
        ts_return_type = "Promise<string>"
    )]
    pub fn rehearse<'env>(
        &self,
        env: &'env Env,
        request: String,
        callback: Callback,
    ) -> Result<PromiseRaw<'env, String>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move {
            let request: RunRequest = parse(&request)?;
            let host = Arc::new(NodeHost::new(callback));
            let outcome = engine.rehearse(request, Arc::clone(&host)).await;
            host.flush().await;
            reply(outcome)
        })
    }

    /// Takes an `ImportRequest` and the function that reaches the `Host`, of which only events use;
    /// resolves to `Reply<ImportReport>`.
    #[napi(
        ts_args_type = "request: string, callback: (kind: string, json: string, settle?: Buffer | null, fence?: Buffer | null) => Promise<string>",
        ts_return_type = "Promise<string>"
    )]
    pub fn import<'env>(
        &self,
        env: &'env Env,
        request: String,
        callback: Callback,
    ) -> Result<PromiseRaw<'env, String>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move {
            let request: ImportRequest = parse(&request)?;
            let host = Arc::new(NodeHost::new(callback));
            let outcome = engine.import(request, Arc::clone(&host)).await;
            host.flush().await;
            reply(outcome)
        })
    }

    /// For a command line: handles signals, and ends the process when the event loop can't. Takes
    /// the `Frame` of its JSON document, if it is to print one.
    #[napi(catch_unwind)]
    pub fn command_line(&self, frame: Option<String>) -> Result<()> {
        let frame = frame.as_deref().map(parse).transpose()?;
        let command_line = Arc::new(CommandLine::new(frame));
        if self.command_line.set(Arc::clone(&command_line)).is_ok() {
            spawn(signals::watch(Arc::clone(&self.engine), command_line));
        }
        Ok(())
    }

    /// The process is about to end: stops what the run has left on the server and gives the lock
    /// back. Blocks for `patience_ms` at most.
    #[napi(catch_unwind)]
    pub fn abandon(&self, patience_ms: u32) {
        let patience = Duration::from_millis(patience_ms.into());
        // Past the patience the lock frees itself, when its lease ends.
        let _ = block_on(async { tokio::time::timeout(patience, self.engine.abandon()).await });
    }

    /// Tells the run that is under way to end.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.engine.cancel();
    }

    /// Closes the connection.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn disconnect<'env>(&self, env: &'env Env) -> Result<PromiseRaw<'env, ()>> {
        let engine = Arc::clone(&self.engine);
        env.spawn_future(async move {
            engine.disconnect().await;
            Ok(())
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::from_reason(error.to_string()))
}

fn reply<T: Serialize>(outcome: std::result::Result<T, Failed>) -> Result<String> {
    let reply = match &outcome {
        Ok(value) => serde_json::to_string(&Done { ok: true, value }),
        Err(Failed { error, results }) => {
            serde_json::to_string(&json!({ "ok": false, "error": error, "results": results }))
        }
    };
    reply.map_err(|error| Error::from_reason(error.to_string()))
}

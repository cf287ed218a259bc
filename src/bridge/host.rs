//! The host port over one threadsafe function.
//!
//! One function for everything, so that calls and events keep their order. A call that throws, or
//! whose promise rejects, has broken the host's contract ([`HostGone`]): the JavaScript side reports
//! what users' code throws as data and keeps the values.

use napi::Status;
use napi::bindgen_prelude::{Buffer, FnArgs, Promise};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Failure;
use crate::event::Event;
use crate::host::{
    Acknowledged, BodyCall, BodyReply, Exports, HookCall, Host, HostError, HostGone, ModuleFacts,
    StopReason,
};
use crate::migration::MigrationName;

/// Kind of call, its arguments as JSON, and the commands of a transaction as BSON.
type Arguments = FnArgs<(String, String, Option<Buffer>, Option<Buffer>)>;

/// `(kind, json, settle, fence) => Promise<json>`. Keeps the process alive as long as the run lasts.
pub type Callback = ThreadsafeFunction<Arguments, Promise<String>, Arguments, Status, false>;

/// Node, as the runner sees it.
pub struct NodeHost {
    callback: Callback,
}

/// `HostReply` of the contract.
#[derive(Deserialize)]
struct Reply {
    ok: bool,
    error: Option<HostError>,
}

/// `ModuleFacts` of the contract.
#[derive(Deserialize)]
struct LoadedModule {
    ok: bool,
    name: String,
    error: Option<HostError>,
    #[serde(flatten)]
    exports: Option<Exports>,
}

const NO_COMMANDS: [Option<Vec<u8>>; 2] = [None, None];

impl NodeHost {
    /// A host behind this function.
    pub fn new(callback: Callback) -> Self {
        Self { callback }
    }

    /// Returns when everything that was sent before has arrived.
    pub async fn flush(&self) {
        // A host that is gone has nothing left to receive.
        let _: Result<serde_json::Value, HostGone> =
            self.ask("flush", &json!(null), NO_COMMANDS).await;
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        kind: &str,
        arguments: &impl Serialize,
        [settle, fence]: [Option<Vec<u8>>; 2],
    ) -> Result<T, HostGone> {
        let json = serde_json::to_string(arguments).map_err(|error| gone(&error))?;
        let arguments =
            (kind.to_owned(), json, settle.map(Buffer::from), fence.map(Buffer::from)).into();
        let promise =
            self.callback.call_async_catch(arguments).await.map_err(|error| gone(&error))?;
        let reply = promise.await.map_err(|error| gone(&error))?;
        serde_json::from_str(&reply).map_err(|error| gone(&error))
    }

    fn tell(&self, kind: &str, arguments: &impl Serialize) {
        if let Ok(json) = serde_json::to_string(arguments) {
            let arguments = (kind.to_owned(), json, None, None).into();
            // Fails only while the environment is being torn down: nobody is left to hear it.
            self.callback.call(arguments, ThreadsafeFunctionCallMode::NonBlocking);
        }
    }
}

impl Host for NodeHost {
    async fn load(&self, names: Vec<MigrationName>) -> Result<Vec<ModuleFacts>, HostGone> {
        let modules: Vec<LoadedModule> = self.ask("load", &names, NO_COMMANDS).await?;
        modules.into_iter().map(LoadedModule::facts).collect()
    }

    async fn connect(&self, app_name: String) -> Result<Acknowledged, HostGone> {
        let reply: Reply =
            self.ask("connect", &json!({ "appName": app_name }), NO_COMMANDS).await?;
        reply.acknowledged()
    }

    async fn run(&self, call: BodyCall) -> Result<BodyReply, HostGone> {
        let arguments = json!({
            "name": call.name, "direction": call.direction, "runId": call.run_id,
            "fencingToken": call.fencing_token,
        });
        self.ask("run", &arguments, [call.settle, call.fence]).await
    }

    async fn hook(&self, call: HookCall) -> Result<Acknowledged, HostGone> {
        let reply: Reply = self.ask("hook", &call, NO_COMMANDS).await?;
        reply.acknowledged()
    }

    fn abort(&self, reason: StopReason) {
        self.tell("abort", &Failure::from(reason));
    }

    fn emit(&self, event: &Event) {
        self.tell("emit", event);
    }
}

impl Reply {
    fn acknowledged(self) -> Result<Acknowledged, HostGone> {
        match (self.ok, self.error) {
            (true, _) => Ok(Ok(())),
            (false, Some(error)) => Ok(Err(error)),
            (false, None) => Err(HostGone("it reported a failure without an error".into())),
        }
    }
}

impl LoadedModule {
    fn facts(self) -> Result<ModuleFacts, HostGone> {
        let name = MigrationName::new(&self.name).map_err(|error| gone(&error))?;
        let exports = match (self.ok, self.exports, self.error) {
            (true, Some(exports), _) => Ok(exports),
            (false, _, Some(error)) => Err(error),
            (true, None, _) | (false, _, None) => {
                return Err(HostGone("it reported a module without its facts".into()));
            }
        };
        Ok(ModuleFacts { name, exports })
    }
}

fn gone(error: &dyn std::fmt::Display) -> HostGone {
    HostGone(error.to_string())
}

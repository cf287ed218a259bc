//! Signals of a command-line run, handled off the event loop.
//!
//! JavaScript's handlers don't run while a body blocks the event loop, and that is just when someone
//! presses Ctrl-C. So the first signal cancels the run from here, and the second ends the process at
//! once. A run that is over ends the process by itself when the event loop does not answer.
//!
//! Libraries must not do this; only the command line asks for it.
//!
//! # Assumptions
//! Node has listeners for the same signals before [`watch`] is called: without one it raises the
//! default action again, and with its first one added later it takes the signal away from us.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::engine::Engine;
use crate::error::{Failed, Failure};
use crate::host::StopReason;

/// From the first signal to the end of the process, whatever the database does: 5 s for the body, and
/// time to stop its operations and release the lock.
const PATIENCE: Duration = Duration::from_secs(12);

/// The one failure besides a signal that may leave a body running: see `lib/cli/exit.js`.
const LOST: &str = "LOCK_LOST";
const LOST_STATUS: i32 = 5;
/// How long the event loop may take to answer when a run is over.
const ANSWER: Duration = Duration::from_millis(500);

/// The JSON document of a command, as far as it is known before the run.
#[derive(Debug, Clone, Deserialize)]
pub struct Frame {
    /// What stands beside `error`. One with `migrations` gets there what had been done.
    document: Map<String, Value>,
    /// What comes before the code in the address of the error's documentation; without it the error
    /// has the fields of 1.x only.
    docs: Option<String>,
    /// On one line, because events stand on the lines before.
    compact: bool,
}

impl Frame {
    fn fill(&self, Failed { error, results }: &Failed) -> String {
        let mut details = error.context.clone();
        // The numbers of the run have a place of their own, in version 2.
        let metrics = details.as_object_mut().and_then(|facts| facts.remove("metrics"));
        let mut told = json!({
            "code": error.code, "message": error.message, "details": details, "hint": error.hint,
        });
        if let (Some(docs), Value::Object(told)) = (&self.docs, &mut told) {
            told.insert("certainty".into(), json!(error.certainty));
            told.insert("docsUrl".into(), json!(docs.clone() + &error.code.to_lowercase()));
        }
        let mut document = self.document.clone();
        if let Some(migrations) = document.get_mut("migrations") {
            *migrations = json!(results);
        }
        if let (Some(place), Some(metrics)) = (document.get_mut("metrics"), metrics) {
            *place = metrics;
        }
        document.insert("error".into(), told);
        let document = Value::Object(document);
        if self.compact { document.to_string() } else { format!("{document:#}") }
    }
}

/// What the run of a command line has heard.
#[derive(Debug, Default)]
pub struct CommandLine {
    frame: Option<Frame>,
    /// 128 + the number of the first signal; 0 as long as there was none.
    signalled: AtomicI32,
    /// Is the run over? Then its outcome is told where it is handed over.
    over: AtomicBool,
}

impl CommandLine {
    /// A command line that has heard nothing yet; with a frame, its one document goes to stdout.
    pub fn new(frame: Option<Frame>) -> Self {
        Self { frame, ..Self::default() }
    }

    /// Hands a run's outcome over to the event loop. A loop that is blocked by the very body that
    /// made the run stop can't take it: then the outcome is told from here, and the process ends.
    pub async fn hand_over(&self, answered: impl Future<Output = ()>, stopped: Option<&Failed>) {
        self.over.store(true, Ordering::SeqCst);
        let must_end = match (self.signalled.load(Ordering::SeqCst), stopped) {
            (0, Some(Failed { error, .. })) if error.code == LOST => Some(LOST_STATUS),
            (0, _) => None,
            (status, _) => Some(status),
        };
        match must_end {
            None => answered.await,
            Some(status) => {
                if tokio::time::timeout(ANSWER, answered).await.is_err() {
                    self.tell(stopped);
                    end(status);
                }
            }
        }
    }

    fn tell(&self, stopped: Option<&Failed>) {
        let Some(failed) = stopped else { return };
        // Nobody is helped by an error about a closed pipe.
        if let Some(frame) = &self.frame {
            let _ = writeln!(std::io::stdout(), "{}", frame.fill(failed));
        }
        let error = &failed.error;
        let _ = writeln!(std::io::stderr(), "✖ {}: {}", error.code, error.message);
    }
}

/// Watches for signals as long as the process lives.
pub async fn watch(engine: Arc<Engine>, command_line: Arc<CommandLine>) {
    // Without a watcher the signals do what they do by default.
    let Ok(mut signals) = Signals::open() else { return };
    let status = signals.next().await;
    command_line.signalled.store(status, Ordering::SeqCst);
    engine.cancel();
    tokio::select! {
        second = signals.next() => end(second),
        () = tokio::time::sleep(PATIENCE) => {}
    }
    // The database does not answer. Nobody would say what had been done, so say at least this.
    if !command_line.over.load(Ordering::SeqCst) {
        let error = Failure::from(StopReason::Cancelled);
        command_line.tell(Some(&Failed { error, results: Vec::new() }));
    }
    end(status)
}

/// Without the handlers that would run at a normal exit: the event loop may be blocked in one.
fn end(status: i32) -> ! {
    signal_hook::low_level::exit(status)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn open() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
        }
    }
}

#[cfg(windows)]
struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    stop: tokio::signal::windows::CtrlBreak,
    close: tokio::signal::windows::CtrlClose,
}

#[cfg(windows)]
impl Signals {
    fn open() -> std::io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
        Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()?, close: ctrl_close()? })
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.stop.recv() => 143,
            _ = self.close.recv() => 129,
        }
    }
}

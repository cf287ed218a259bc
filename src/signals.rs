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
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::engine::Engine;
use crate::error::Failed;

/// From the first signal to the end of the process, whatever the database does: 5 s for the body, and
/// time to stop its operations and release the lock.
const PATIENCE: Duration = Duration::from_secs(12);

/// The one failure besides a signal that may leave a body running: see `lib/cli/exit.js`.
const LOST: &str = "LOCK_LOST";
const LOST_STATUS: i32 = 5;
/// How long the event loop may take to answer when a run is over.
const ANSWER: Duration = Duration::from_millis(500);

/// What the run of a command line has heard.
#[derive(Debug, Default)]
pub struct CommandLine {
    json: bool,
    /// 128 + the number of the first signal; 0 as long as there was none.
    signalled: AtomicI32,
}

impl CommandLine {
    /// A command line that has heard nothing yet; `json`: its one document goes to stdout.
    pub fn new(json: bool) -> Self {
        Self { json, signalled: AtomicI32::new(0) }
    }

    /// Hands a run's outcome over to the event loop. A loop that is blocked by the very body that
    /// made the run stop can't take it: then the outcome is told from here, and the process ends.
    pub async fn hand_over(&self, answered: impl Future<Output = ()>, stopped: Option<&Failed>) {
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
        let Some(Failed { error, .. }) = stopped else { return };
        // Nobody is helped by an error about a closed pipe.
        if self.json {
            let document = json!({ "error": {
                "code": error.code, "message": error.message,
                "details": error.context, "hint": error.hint,
            } });
            let _ = writeln!(std::io::stdout(), "{document:#}");
        }
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
        () = tokio::time::sleep(PATIENCE) => end(status),
    }
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

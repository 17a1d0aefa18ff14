//! The end of a process after a signal.

use std::{io, thread, time::Duration};

use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

/// The exit code after a second signal: the code that a shell reports for SIGINT.
const IMPATIENT: i32 = 130;
/// The exit code of a process that did not end in time.
const LATE: i32 = 1;

/// A token that the first SIGTERM or SIGINT cancels. The second signal ends the process at once. If the process has not ended by itself
/// after `within`, it is ended too. A separate thread does this, so busy threads cannot delay it.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub fn on_signal(within: Option<Duration>) -> io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let first = token.clone();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _context = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        )
    };
    let within = within.unwrap_or(Duration::MAX);
    let wait = async move {
        let name = either(&mut terminate, &mut interrupt).await;
        tracing::info!(signal = name, "shutting down");
        first.cancel();
        tokio::select! {
            biased;
            name = either(&mut terminate, &mut interrupt) => {
                crate::failure::warn(&format!("{name} came again: shut down without draining"));
                crate::failure::end_at_once(IMPATIENT);
            }
            () = sleep(within) => {
                let seconds = within.as_secs_f64();
                crate::failure::warn(&format!("not shut down within {seconds} s: given up"));
                crate::failure::end_at_once(LATE);
            }
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(wait))?;
    Ok(token)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        biased;
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

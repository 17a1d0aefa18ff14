//! The way from a signal to the end of a process.

use std::{io, thread, time::Duration};

use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

/// Says that the second signal ended the process at once; what a shell reports for SIGINT.
const IMPATIENT: i32 = 130;
/// Says that the process did not end in time.
const LATE: i32 = 1;

/// Returns a token that is cancelled by the first SIGTERM or SIGINT. The second one ends the process at once, and so does `within` if it
/// passes before the process has ended by itself. A thread of its own sees to that, however busy the others are.
///
/// # Errors
/// If the signals cannot be listened to.
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
    let wait = async move {
        let name = either(&mut terminate, &mut interrupt).await;
        tracing::info!(signal = name, "shutting down");
        first.cancel();
        tokio::select! {
            biased;
            name = either(&mut terminate, &mut interrupt) => {
                crate::failure::warn(&format!("{name} came again: shut down without draining"));
                end_at_once(IMPATIENT);
            }
            within = late(within) => {
                let seconds = within.as_secs_f64();
                crate::failure::warn(&format!("not shut down within {seconds} s: given up"));
                end_at_once(LATE);
            }
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(wait))?;
    Ok(token)
}

/// Waits until it is too late, and returns how long that took.
async fn late(within: Option<Duration>) -> Duration {
    match within {
        Some(within) => {
            sleep(within).await;
            within
        }
        None => std::future::pending().await,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a second signal asks for the end at once, and a destructor could hang"
)]
fn end_at_once(code: i32) -> ! {
    std::process::exit(code)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        biased;
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

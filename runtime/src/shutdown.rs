//! The way from a signal to the end of a process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Says that the second signal ended the process at once; what a shell reports for SIGINT.
const IMPATIENT: i32 = 130;

/// Returns a token that is cancelled by the first SIGTERM or SIGINT. The second one ends the process at once.
///
/// # Errors
/// If the signals cannot be listened to.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let first = token.clone();
    tokio::spawn(async move {
        let name = either(&mut terminate, &mut interrupt).await;
        tracing::info!(signal = name, "shutting down");
        first.cancel();
        let name = either(&mut terminate, &mut interrupt).await;
        crate::failure::warn(&format!("{name} came again: shut down without draining"));
        end_at_once();
    });
    Ok(token)
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever signals twice wants no destructor to run"
)]
fn end_at_once() -> ! {
    std::process::exit(IMPATIENT)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        biased;
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

//! A part of this process that runs until it is told to stop.

use std::{error::Error, future::Future};

use runtime::failure::chain;
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Failure};

/// A task that runs until it is told to stop.
#[derive(Debug)]
pub(super) struct Task<E> {
    name: &'static str,
    task: JoinHandle<Result<(), E>>,
    stop: CancellationToken,
}

// === impl Task ===

impl<E: Error + Send + 'static> Task<E> {
    /// Starts work that ends when `stop` is cancelled.
    pub(super) fn start(
        name: &'static str,
        threads: &Handle,
        stop: CancellationToken,
        work: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> Self {
        let task = threads.spawn(work);
        Self { name, task, stop }
    }

    /// Fails if the task has ended.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.task.is_finished() {
            let cause = format!("the {} stopped unexpectedly", self.name);
            let hint = "run again with --log-level info to see why";
            return Err(Failure::new(Exit::No, cause).hint(hint));
        }
        Ok(())
    }

    /// Tells the task to stop, and waits for its end.
    pub(super) async fn end(self) -> Result<(), Failure> {
        self.stop.cancel();
        let cause = match self.task.await {
            Ok(Ok(())) => return Ok(()),
            // The task was killed.
            Err(error) if error.is_cancelled() => return Ok(()),
            Ok(Err(error)) => chain(&error),
            Err(error) => chain(&error),
        };
        let cause = format!("the {} failed: {cause}", self.name);
        Err(Failure::new(Exit::No, cause))
    }
}

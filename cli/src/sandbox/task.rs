//! A part of this process that runs until it is told to stop.

use std::{error::Error, future::Future};

use runtime::failure::chain;
use tokio::{
    runtime::Handle,
    task::{JoinError, JoinHandle},
};
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
    pub(super) fn start<F>(
        name: &'static str,
        threads: &Handle,
        run: impl FnOnce(CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        Self {
            name,
            task: threads.spawn(run(stop.clone())),
            stop,
        }
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
        let ended: Result<Result<(), E>, JoinError> = self.task.await;
        let failed = |error: &dyn Error| {
            let cause = format!("the {} failed: {}", self.name, chain(error));
            Failure::new(Exit::No, cause)
        };
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&error)),
            // The task was killed.
            Err(error) if error.is_cancelled() => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }
}

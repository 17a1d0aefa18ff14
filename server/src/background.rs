//! Threads for what no session waits for: unary decisions, and the end of a session's memory.

use std::io;

use service::process::lower_priority;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::JoinHandle,
};

/// Threads of a low priority.
///
/// They are not those of tokio's own pool: a thread keeps its low priority, and `block_in_place` lets any thread of that pool serve sessions.
#[derive(Debug)]
pub(crate) struct Background {
    threads: Handle,
    runtime: Option<Runtime>,
}

impl Background {
    /// At most `threads_max` threads, which start when there is work. Further work waits.
    pub(crate) fn start(threads_max: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads_max)
            .thread_name("background")
            .on_thread_start(lower_priority)
            .build()?;
        Ok(Self {
            threads: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// Runs `work` when a thread is free.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.threads.spawn_blocking(work)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Nobody waits for what is running.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{fs, sync::mpsc};

    use tokio::task::block_in_place;

    use super::*;

    /// The nice value of this thread (proc_pid_stat(5), field 19).
    fn nice() -> i32 {
        let stat = fs::read_to_string("/proc/thread-self/stat").expect("Linux has it");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        let nice = fields.split(' ').nth(16).expect("it has 52 fields");
        nice.parse().expect("a number")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn threads_that_serve_sessions_keep_their_priority() {
        // The priority of the thread that serves during a large step.
        let serving = || {
            tokio::spawn(async {
                let (sender, receiver) = mpsc::sync_channel(1);
                tokio::spawn(async move { sender.send(nice()) });
                block_in_place(|| receiver.recv())
            })
        };
        let usual = serving().await.expect("no panic");
        let background = Background::start(1).expect("it needs no file");
        let low = background.spawn(nice).await.expect("no panic");
        assert_ne!(Ok(low), usual);
        assert_eq!(serving().await.expect("no panic"), usual);
    }
}

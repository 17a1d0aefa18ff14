//! A snapshot of a cluster, read at once with the credentials of a kubeconfig. Nothing is written, and nothing is watched.

use std::{pin::pin, time::Duration};

use agent_core::{
    api::Kind,
    cluster::{Cluster as _, PageStream as _},
};
use agent_kube::KubeCluster;
use decree_core::wording::count;
use tokio::time::{Instant, timeout};

use crate::{
    args::KubeArgs,
    exit::{Exit, Failure},
    page::{Io, one_line},
    resume,
    snapshot::Snapshot,
};

/// When the progress is told first; each further time after twice as long.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// A read that is under way.
struct Progress {
    begun: Instant,
    /// The time from the beginning to the next line.
    next: Duration,
}

/// Reads the credentials, and names the cluster and its user on stderr.
pub(crate) async fn connect(
    args: &KubeArgs,
    patience: Duration,
    io: &mut Io<'_>,
) -> Result<KubeCluster, Failure> {
    let cluster = resume::connect(&args.config(), patience).await?;
    let target = cluster.target();
    let api_server = target.api_server.trim_end_matches('/');
    let name = target.context.as_ref().map_or_else(
        || format!("cluster {api_server}"),
        |context| format!("cluster {context} at {api_server}"),
    );
    let user = args.impersonate.as_ref().or(target.user.as_ref());
    let user = user.unwrap_or(&target.credentials);
    let said = format!("{name}, as {user}, read now");
    writeln!(io.stderr, "{}", one_line(&said))?;
    Ok(cluster)
}

/// Reads the objects of these kinds in namespaces; `None` stands for all. No page may take longer than `patience`.
pub(crate) async fn read(
    cluster: &KubeCluster,
    namespaces: impl IntoIterator<Item = Option<String>>,
    kinds: &[Kind],
    patience: Duration,
    io: &mut Io<'_>,
) -> Result<Snapshot, Failure> {
    let mut snapshot = Snapshot::default();
    let mut progress = Progress::begin();
    for namespace in namespaces {
        let namespace = namespace.as_deref();
        snapshot.is_partial |= namespace.is_some();
        let cluster = cluster.in_namespace(namespace);
        let cluster = cluster.map_err(|it| Failure::new(Exit::Usage, it.to_string()))?;
        for &kind in kinds {
            let before = snapshot.count(kind);
            let mut pages = cluster.list(kind);
            loop {
                let next = pages.next();
                let next = progress.wait(next, patience, &snapshot, io).await?;
                let Some(page) = next else { break };
                let page = page.map_err(|error| refused(error, namespace))?;
                // A list that begins again replaces its earlier pages.
                if page.part.begins {
                    snapshot.truncate(kind, before);
                }
                snapshot.take(page.items);
                let invalid = page.invalid.iter().map(ToString::to_string);
                snapshot.left_out.extend(invalid);
            }
        }
    }
    if let Some(first) = snapshot.left_out.first() {
        let objects = count(snapshot.left_out.len(), "invalid object");
        io.notice(&format!("{objects} left out, such as {first}"))?;
    }
    Ok(snapshot)
}

fn refused(error: agent_core::api::ApiError, namespace: Option<&str>) -> Failure {
    let hint = match namespace {
        None => "name a namespace that you may read with -n NAMESPACE".to_owned(),
        Some(name) => {
            format!("this takes the permission to list replicasets.apps and pods in {name}")
        }
    };
    resume::refused(error, &hint)
}

impl Progress {
    fn begin() -> Self {
        Self {
            begun: Instant::now(),
            next: TOLD_AFTER,
        }
    }

    /// Waits for the next page, and tells now and then how much was read before.
    async fn wait<T>(
        &mut self,
        page: impl Future<Output = T>,
        patience: Duration,
        snapshot: &Snapshot,
        io: &mut Io<'_>,
    ) -> Result<T, Failure> {
        let (mut page, asked) = (pin!(page), Instant::now());
        loop {
            let silent = self.next.saturating_sub(self.begun.elapsed());
            let left = patience.saturating_sub(asked.elapsed());
            if let Ok(page) = timeout(silent.min(left), &mut page).await {
                return Ok(page);
            }
            if asked.elapsed() >= patience {
                let cause = "the API server does not answer in time";
                return Err(Failure::new(Exit::Unreachable, cause).hint("wait longer: --timeout"));
            }
            self.next *= 2;
            let [sets, pods] = [Kind::ReplicaSet, Kind::Pod].map(|kind| snapshot.count(kind));
            let (sets, pods) = (count(sets, "ReplicaSet"), count(pods, "pod"));
            writeln!(io.stderr, "reading: {sets} and {pods} so far")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::time::sleep;

    use super::*;
    use crate::Colors;

    /// Reads this many pages of this many milliseconds each, with a patience of 30 s. Returns the seconds until the end, and the lines.
    async fn wait(pages: u32, milliseconds: u64) -> (u64, String) {
        let mut stderr = Vec::new();
        let mut io = Io {
            stdin: &mut io::empty(),
            stdout: &mut io::sink(),
            stderr: &mut stderr,
            columns: || None,
            colors: Colors::default(),
        };
        let mut progress = Progress::begin();
        for _ in 0..pages {
            let page = sleep(Duration::from_millis(milliseconds));
            let patience = Duration::from_secs(30);
            let snapshot = Snapshot::default();
            let waited = progress.wait(page, patience, &snapshot, &mut io);
            if waited.await.is_err() {
                break;
            }
        }
        let lines = String::from_utf8(stderr).expect("it is text");
        (progress.begun.elapsed().as_secs(), lines)
    }

    #[tokio::test(start_paused = true)]
    async fn progress_is_told_from_a_second_on_and_each_time_after_twice_as_long() {
        let line = "reading: 0 ReplicaSets and 0 pods so far\n";
        for (pages, milliseconds, seconds, lines) in [
            (3, 300, 0, 0),
            (2, 600, 1, 1),
            (1, 1_500, 1, 1),
            (25, 200, 5, 3),
            (1, 60_000, 30, 5),
            (3, 25_000, 75, 7),
        ] {
            let (end, told) = wait(pages, milliseconds).await;
            let case = (pages, milliseconds);
            assert_eq!((end, told), (seconds, line.repeat(lines)), "{case:?}");
        }
    }
}

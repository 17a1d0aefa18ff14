//! A server with its own agents and clusters, for the commands that talk to a server.

use std::{
    io::{self, Write},
    path::Path,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use agent_fake::Kind;
use decree_agent::FakeCluster;
use decree_server::{Config, Server};
use serde_json::Value;
use tokio::{runtime::Runtime, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{Ended, check_with, decree_on, path, text};

/// The maximum duration of a wait.
const DEADLINE: Duration = Duration::from_secs(60);
/// The interval of checks for what no change announces.
const AGAIN: Duration = Duration::from_millis(20);

/// All running parts; dropping it ends them.
pub(super) struct System {
    pub(super) url: String,
    connector: service::transport::Connector,
    pub(super) clusters: Vec<FakeCluster>,
    /// The width of the terminal of the commands.
    pub(super) columns: fn() -> Option<usize>,
    pub(super) stop: CancellationToken,
    runtime: Runtime,
}

/// A stream that announces its first write.
struct Announcing {
    text: Vec<u8>,
    begun: SyncSender<()>,
}

impl Write for Announcing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Only the first announcement counts, and the receiver may be gone.
        let _ = self.begun.try_send(());
        Ok(())
    }
}

impl System {
    /// Starts a server and, for each name, a cluster of docs/examples/web.yaml with an agent. Returns after everything has
    /// settled.
    pub(super) fn start(names: &[&str]) -> Self {
        Self::start_within(agent_core::budget::BudgetConfig::default(), names)
    }

    /// Starts the same with agents that have this budget.
    pub(super) fn start_within(budget: agent_core::budget::BudgetConfig, names: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads");
        let stop = CancellationToken::new();
        let server = runtime
            .block_on(Server::bind(Config::embedded()))
            .expect("free ports");
        let url = format!("http://{}", server.addresses().grpc);
        let connector = service::transport::Connector::local(&server.addresses().grpc);
        runtime.spawn(server.serve(stop.clone()));
        let mut system = Self {
            url,
            connector,
            clusters: Vec::new(),
            columns: || None,
            stop,
            runtime,
        };
        names.iter().for_each(|name| system.add(name, budget));
        system.settle();
        system
    }

    /// Adds a cluster with an agent.
    pub(super) fn add(&mut self, name: &str, budget: agent_core::budget::BudgetConfig) {
        let objects = agent_fake::manifest::read(&[path("docs/examples/web.yaml").into()])
            .expect("valid")
            .documents;
        let seed = self.clusters.len() as u64;
        let config = agent_fake::ClusterConfig {
            seed,
            start: jiff::Timestamp::now(),
            ..agent_fake::ClusterConfig::default()
        };
        let _context = self.runtime.enter();
        let cluster = FakeCluster::start(config, objects).expect("the cluster takes them");
        let mut config = decree_agent::ShellConfig::new(self.connector.clone());
        config.agent.instance = format!("agent-{name}");
        config.agent.cluster_name = name.to_owned();
        config.agent.budget = budget;
        self.runtime.spawn(decree_agent::run(
            config,
            cluster.clone(),
            self.stop.clone(),
        ));
        self.clusters.push(cluster);
    }

    /// Runs a command against the server.
    pub(super) fn decree(&self, arguments: &[&str]) -> Ended {
        self.decree_while(arguments, None)
    }

    /// Checks a transcript of commands against the server.
    pub(super) fn check(&self, transcript: &str) {
        check_with("", &["--server", &self.url], transcript);
    }

    /// Repeats a command until its output is as the pattern says. Returns the output.
    pub(super) fn until(&self, line: &str, pattern: &str) -> String {
        let out = || self.decree(&line.split(' ').collect::<Vec<_>>()).out;
        self.wait_until(|| says(pattern, &out()));
        out()
    }

    pub(super) fn scale(&self, set: &str, replicas: i32) {
        let scaled = self.clusters[0].with(|it| it.scale("default", set, replicas));
        scaled.expect("it is there");
    }

    /// Runs a command that waits for decisions, and scales a ReplicaSet once the command waits.
    pub(super) fn decree_scaling(&self, set: &str, replicas: i32, arguments: &[&str]) -> Ended {
        self.decree_while(arguments, Some(&|| self.scale(set, replicas)))
    }

    /// Runs a command that waits for decisions, and ends the server once the command waits.
    pub(super) fn decree_stopping(&self, arguments: &[&str]) -> Ended {
        self.decree_while(arguments, Some(&|| self.stop.cancel()))
    }

    /// Runs a command, and acts once it has written something.
    pub(super) fn decree_while(&self, arguments: &[&str], act: Option<&dyn Fn()>) -> Ended {
        let (begun, has_begun) = sync_channel(1);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut out = Announcing {
                    text: Vec::new(),
                    begun,
                };
                let all = [arguments, &["--server", &self.url]].concat();
                let (exit, err) = decree_on(self.columns, "", &mut out, "decree", &all);
                Ended {
                    exit,
                    err,
                    out: text(out.text),
                }
            });
            if let Some(act) = act {
                let begun = has_begun.recv_timeout(DEADLINE);
                begun.expect("the command begins to wait");
                act();
            }
            waiting.join().expect("the command ends")
        })
    }

    /// Waits until all desired pods are ready and the server has nothing left to do.
    pub(super) fn settle(&self) {
        let is_full = |cluster: &FakeCluster| {
            cluster.with(|model| model.objects(Kind::ReplicaSet).all(|set| is_full(set)))
        };
        if self.clusters.is_empty() {
            return;
        }
        self.wait_until(|| self.clusters.iter().all(is_full));
        self.wait_until(|| {
            let list = self.decree(&["get", "replicasets", "-o", "json"]).out;
            let mut states = list.match_indices(r#""state":""#);
            let in_sync = r#""state":"REPLICA_SET_STATE_IN_SYNC""#;
            states.all(|(at, _)| list[at..].starts_with(in_sync))
        });
    }

    pub(super) fn wait_until(&self, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !is_so() {
            assert!(Instant::now() < deadline, "nothing came to rest");
            // The loop checks again in any case.
            let _ = self
                .runtime
                .block_on(async { timeout(AGAIN, self.clusters[0].changed()).await });
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn is_full(set: &Value) -> bool {
    let wanted = &set["spec"]["replicas"];
    *wanted == set["status"]["availableReplicas"]
        && set["status"]["observedGeneration"] == set["metadata"]["generation"]
        && set["status"]["terminatingReplicas"] == 0
}

/// Whether a text matches `pattern`, in which `…` stands for anything.
pub(super) fn says(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Checks the output of a command, line by line, against a text in which `…` stands for anything.
pub(super) fn assert_says(pattern: &str, said: &str) {
    let mut lines = said.lines();
    let mut patterns = pattern.lines().peekable();
    let mut same = true;
    while let Some(each) = patterns.next() {
        // A `…` alone at the end stands for all further lines.
        if each == "…" && patterns.peek().is_none() {
            lines.by_ref().for_each(drop)
        } else {
            same &= lines.next().is_some_and(|line| says(each, line))
        }
    }
    let same = same && lines.next().is_none();
    assert!(same, "expected:\n{pattern}\nsaid:\n{said}");
}

#[test]
fn gaps_of_patterns_stand_for_anything() {
    assert!(says("a … c", "a b c") && says("…", "") && says("abc", "abc") && says("a…", "ab"));
    assert!(!says("a … c", "a b d") && !says("abc", "abcd") && !says("…x…", "abc"));
    assert!(Path::new(&path("docs/examples/web.yaml")).exists());
}

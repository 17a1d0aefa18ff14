//! One container of a pod: its process, its probes, and what is said of it.

use std::{
    io::{self, Read as _, Write as _},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::task;

use super::{
    clock,
    network::Network,
    process::{Plan, Process},
};

/// How long the second start waits where a container ends again; each further one waits twice as long.
const BACK_OFF: Duration = Duration::from_secs(10);
/// The longest of these.
const LONGEST: Duration = Duration::from_mins(5);
/// How long a probe may take, whatever its manifest says: this machine may be a slow one, and what hangs is found all the same.
const PROBED_WITHIN: Duration = Duration::from_mins(1);
/// How often a container is asked that is not ready yet.
const EAGERLY: Duration = Duration::from_millis(500);

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Starts before the others, and ends after them.
    Sidecar,
    /// What the pod is for.
    Main,
}

/// A container, running or not.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) part: Part,
    spec: Value,
    plan: Option<Plan>,
    process: Option<Process>,
    started_at: String,
    is_started: bool,
    is_ready: bool,
    restarts: u32,
    due: Instant,
    next_probe: Instant,
    failures: u64,
    last: Option<Value>,
    /// Why it does not run.
    waiting: (&'static str, String),
}

// === impl Container ===

impl Container {
    pub(crate) fn of(spec: &Value, part: Part) -> Self {
        let now = Instant::now();
        Self {
            part,
            spec: spec.clone(),
            plan: None,
            process: None,
            started_at: String::new(),
            is_started: false,
            is_ready: false,
            restarts: 0,
            due: now,
            next_probe: now,
            failures: 0,
            last: None,
            waiting: ("ContainerCreating", String::new()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.spec["name"].as_str().unwrap_or_default()
    }

    /// Returns what it is made of, as the pod says.
    pub(crate) fn spec(&self) -> &Value {
        &self.spec
    }

    /// Returns the plan by which it was started last, and the number of its process while it runs.
    pub(crate) fn started(&self) -> Option<(&Plan, Option<u32>)> {
        Some((self.plan.as_ref()?, self.process.as_ref().map(Process::pid)))
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Tells whether it has passed its startup probe.
    pub(crate) fn is_started(&self) -> bool {
        self.is_started
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Tells whether it may be started.
    pub(crate) fn is_due(&self) -> bool {
        self.process.is_none() && Instant::now() >= self.due
    }

    /// Returns the code with which it ended last.
    pub(crate) fn code(&self) -> Option<i64> {
        self.last.as_ref()?["terminated"]["exitCode"].as_i64()
    }

    /// Says why it cannot be started, and tries again a while later.
    pub(crate) fn waits(&mut self, reason: &'static str, message: String) {
        self.waiting = (reason, message);
        self.due = Instant::now() + EAGERLY;
    }

    /// Starts it.
    pub(crate) fn start(&mut self, plan: Plan) {
        match plan.start() {
            Ok(process) => {
                self.process = Some(process);
                self.started_at = clock::now();
                self.is_started = self.spec["startupProbe"].is_null();
                self.is_ready = self.is_started && self.spec["readinessProbe"].is_null();
                self.next_probe = Instant::now();
                self.failures = 0;
            }
            Err(error) => self.waits("CreateContainerError", error.to_string()),
        }
        self.plan = Some(plan);
    }

    /// Takes note of its end, and says when it is started again.
    pub(crate) fn notice_end(&mut self) {
        let Some(code) = self.process.as_mut().and_then(Process::ended) else {
            return;
        };
        self.process = None;
        (self.is_started, self.is_ready) = (false, false);
        let reason = if code == 0 { "Completed" } else { "Error" };
        self.last = Some(json!({"terminated": {
            "exitCode": code, "reason": reason, "startedAt": self.started_at, "finishedAt": clock::now(),
        }}));
        // The first one is not held up.
        let delay = match self.restarts {
            0 => Duration::ZERO,
            more => LONGEST.min(BACK_OFF * 2_u32.saturating_pow(more - 1)),
        };
        self.restarts += 1;
        self.due = Instant::now() + delay;
        self.waiting = ("CrashLoopBackOff", format!("back-off of {delay:?}"));
    }

    pub(crate) fn signal(&mut self, name: &str) {
        if let Some(process) = &mut self.process {
            process.signal(name);
        }
    }

    /// Asks it how it is, where a probe is due.
    pub(crate) async fn probe(&mut self, network: &Arc<Network>) {
        if self.process.is_none() || Instant::now() < self.next_probe {
            return;
        }
        let kind = match (self.is_started, self.is_ready) {
            (false, _) => "startupProbe",
            (true, false) => "readinessProbe",
            // It has been ready: a readiness that is lost and a life that is are found by the same rounds.
            (true, true) => "livenessProbe",
        };
        let probe = self.spec[kind].clone();
        let period = Duration::from_secs(probe["periodSeconds"].as_u64().unwrap_or(10));
        let fine = self.passes(&probe, network).await;
        match kind {
            "startupProbe" => {
                self.is_started = fine;
                self.is_ready = fine && self.spec["readinessProbe"].is_null();
            }
            "readinessProbe" => self.is_ready = fine,
            _ => {
                let readiness = self.spec["readinessProbe"].clone();
                self.is_ready = self.passes(&readiness, network).await;
                self.failures = if fine { 0 } else { self.failures + 1 };
                if self.failures >= probe["failureThreshold"].as_u64().unwrap_or(3) {
                    self.signal("KILL");
                }
            }
        }
        let wait = if self.is_ready { period } else { EAGERLY };
        self.next_probe = Instant::now() + wait.min(period);
    }

    async fn passes(&self, probe: &Value, network: &Arc<Network>) -> bool {
        let get = &probe["httpGet"];
        if get.is_null() {
            return true;
        }
        let port = self.port(&get["port"]);
        let path = get["path"].as_str().unwrap_or("/").to_owned();
        let network = Arc::clone(network);
        let asked = task::spawn_blocking(move || {
            let port = port.ok_or(io::ErrorKind::NotFound)?;
            answers(&network, port, &path)
        });
        asked.await.is_ok_and(|answer| answer.unwrap_or(false))
    }

    /// Returns the number of a port that may be given by its name.
    fn port(&self, port: &Value) -> Option<u16> {
        let number = port.as_u64().or_else(|| {
            let mut ports = self.spec["ports"].as_array()?.iter();
            ports.find(|it| it["name"] == *port)?["containerPort"].as_u64()
        });
        number.and_then(|number| u16::try_from(number).ok())
    }

    /// Returns what the status of the pod says of it.
    pub(crate) fn status(&self, restarts_again: bool) -> Value {
        let (reason, message) = &self.waiting;
        let state = match (&self.process, &self.last) {
            (Some(_), _) => json!({"running": {"startedAt": self.started_at}}),
            (None, Some(last)) if !restarts_again => last.clone(),
            (None, _) => json!({"waiting": {"reason": reason, "message": message}}),
        };
        let image = &self.spec["image"];
        json!({
            "name": self.name(), "image": image, "imageID": image, "containerID": "",
            "ready": self.is_ready, "started": self.is_started, "restartCount": self.restarts,
            "state": state, "lastState": self.last.clone().unwrap_or_else(|| json!({})),
        })
    }
}

/// Asks for a page; what is answered with 2xx or 3xx is well.
fn answers(network: &Network, port: u16, path: &str) -> io::Result<bool> {
    let mut stream = network.connect(port)?;
    stream.set_read_timeout(Some(PROBED_WITHIN))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-probe/1\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok(head.starts_with(b"HTTP/1.1 2") || head.starts_with(b"HTTP/1.1 3"))
}

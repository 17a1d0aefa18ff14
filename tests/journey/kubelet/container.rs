//! One container of a pod: its process, its probes, and its status.

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

/// The delay before further starts of a container that ends repeatedly.
const BACK_OFF: Duration = Duration::from_secs(10);
/// The timeout of a probe, instead of its manifest's: this machine may be slow, and a hanging process is still found.
const PROBED_WITHIN: Duration = Duration::from_mins(1);
/// The interval of probes of a container that is not ready.
const EAGERLY: Duration = Duration::from_millis(500);

/// The role of a container in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Starts before the main containers, and ends after them.
    Sidecar,
    /// A main container of the pod.
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
    last: Option<Value>,
    /// Why it does not run.
    waiting: (&'static str, String),
}

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
            last: None,
            waiting: ("ContainerCreating", String::new()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.spec["name"].as_str().unwrap_or_default()
    }

    /// Its part of the pod's spec.
    pub(crate) fn spec(&self) -> &Value {
        &self.spec
    }

    /// The plan of its last start, and the id of its process while it runs.
    pub(crate) fn started(&self) -> Option<(&Plan, Option<u32>)> {
        Some((self.plan.as_ref()?, self.process.as_ref().map(Process::pid)))
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether it has passed its startup probe.
    pub(crate) fn is_started(&self) -> bool {
        self.is_started
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether it may be started.
    pub(crate) fn is_due(&self) -> bool {
        self.process.is_none() && Instant::now() >= self.due
    }

    /// The exit code of its last end.
    pub(crate) fn code(&self) -> Option<i64> {
        self.last.as_ref()?["terminated"]["exitCode"].as_i64()
    }

    /// Notes why it cannot be started, and schedules another attempt.
    pub(crate) fn waits(&mut self, reason: &'static str, message: String) {
        self.waiting = (reason, message);
        self.due = Instant::now() + EAGERLY;
    }

    pub(crate) fn start(&mut self, plan: Plan) {
        match plan.start() {
            Ok(process) => {
                self.process = Some(process);
                self.started_at = clock::now();
                self.is_started = self.spec["startupProbe"].is_null();
                self.is_ready = self.is_started && self.spec["readinessProbe"].is_null();
                self.next_probe = Instant::now();
            }
            Err(error) => self.waits("CreateContainerError", error.to_string()),
        }
        self.plan = Some(plan);
    }

    /// Notes its end, and schedules the next start.
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
        // The first restart has no delay.
        let delay = BACK_OFF * self.restarts.min(1);
        self.restarts += 1;
        self.due = Instant::now() + delay;
        self.waiting = ("CrashLoopBackOff", format!("back-off of {delay:?}"));
    }

    pub(crate) fn signal(&mut self, name: &str) {
        if let Some(process) = &mut self.process {
            process.signal(name);
        }
    }

    /// Probes the container, if a probe is due.
    pub(crate) async fn probe(&mut self, network: &Arc<Network>) {
        if self.process.is_none() || Instant::now() < self.next_probe {
            return;
        }
        let kind = if self.is_started {
            "readinessProbe"
        } else {
            "startupProbe"
        };
        let probe = self.spec[kind].clone();
        let period = Duration::from_secs(probe["periodSeconds"].as_u64().unwrap_or(10));
        let passes = self.passes(&probe, network).await;
        if self.is_started {
            self.is_ready = passes;
        } else {
            self.is_started = passes;
            self.is_ready = passes && self.spec["readinessProbe"].is_null();
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

    /// The number of a port, given as number or name.
    fn port(&self, port: &Value) -> Option<u16> {
        let number = port.as_u64().or_else(|| {
            let mut ports = self.spec["ports"].as_array()?.iter();
            ports.find(|it| it["name"] == *port)?["containerPort"].as_u64()
        });
        number.and_then(|number| u16::try_from(number).ok())
    }

    /// Its part of the pod's status.
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

/// Requests a page; any 2xx or 3xx answer is success.
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

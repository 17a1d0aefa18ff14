//! `decree console`: opens the console of a server, of this machine or of a cluster.
//!
//! The port of a pod is forwarded by kubectl, with the credentials of the person: the right to forward it is the right to read. A forward
//! of our client would bring a WebSocket library into the program. Of a pod with the network of its node, each process there reaches the
//! port: then the right to create tokens of one service account is the right to read.

use std::{
    io::{self, BufRead as _, BufReader, Read},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use http::StatusCode;
use serde_json::Value;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use crate::{
    args::{ConsoleArgs, KubeArgs},
    cluster,
    exit::{Exit, Failure},
    http::exchange,
    page::{Io, one_line},
    resume, sandbox, server,
};

/// The label of all pods of the shipped manifests, and the name of the container with a server.
const SELECTOR: &str = "app.kubernetes.io/name=decree";
const SERVER: &str = "server";
/// The service account in the namespace of static pods whose tokens may read, and the lifetime of a token.
const VIEWER: &str = "decree-viewer-static";
const LIFETIME: &str = "1h";
/// The admin port of a server without the flag.
const ADMIN_PORT: u16 = 8080;
/// The maximum time until a server or an API server answers, and until kubectl forwards.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const FORWARDS_WITHIN: Duration = Duration::from_secs(30);
/// The interval of looks whether kubectl still runs.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A pod with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServerPod {
    namespace: String,
    name: String,
    admin_port: u16,
    is_ready: bool,
    /// Whether it has the network of its node, so that each process of the node reaches the port.
    is_on_host: bool,
}

/// A running `kubectl port-forward`, which ends when this is dropped.
struct Forward {
    kubectl: Child,
    /// Returns the last line of its errors once it has ended.
    errors: Option<JoinHandle<Option<String>>>,
    pod: ServerPod,
    local: SocketAddr,
}

pub(crate) fn run(args: &ConsoleArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    server::block_on(async {
        let admin = args.admin.admin;
        if !args.kube.is_given() && args.namespace.is_none() {
            match sessions(admin).await {
                Ok(_) => return open(admin, args.no_browser, "", io),
                Err(cause) if !args.admin.is_default() => {
                    let failure = Failure::new(Exit::Unreachable, format!("{admin}: {cause}"));
                    return Err(failure.hint("--admin is the admin address of a server"));
                }
                Err(_) => {}
            }
        }
        let stop = sandbox::on_signal()?;
        let forwarding = async {
            let pods = find(args, io).await?;
            let mut forward = choose(&args.kube, pods).await?;
            let pod = forward.pod.path();
            let from = format!(", from pod {pod} until Ctrl-C");
            open(forward.local, args.no_browser, &from, io)?;
            if forward.pod.is_on_host {
                print_token(&args.kube, &forward.pod, io)?;
            }
            while matches!(forward.kubectl.try_wait(), Ok(None)) {
                sleep(LOOK_EVERY).await;
            }
            Err(forward.ended())
        };
        let stopped = stop.run_until_cancelled(forwarding).await;
        stopped.unwrap_or(Ok(Exit::Done))
    })
}

/// Prints the address, and opens the browser.
pub(crate) fn open(
    admin: SocketAddr,
    no_browser: bool,
    from: &str,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let url = format!("http://{admin}/console/");
    writeln!(io.stdout, "Console: {url}{from}")?;
    io.stdout.flush()?;
    if !no_browser {
        let program = if cfg!(target_os = "macos") {
            "open"
        } else {
            "xdg-open"
        };
        match quiet(program).arg(&url).spawn() {
            // Nobody needs its end, but the system keeps an ended program until somebody asks.
            Ok(mut browser) => drop(thread::spawn(move || browser.wait())),
            Err(error) => io.notice(&format!("{program}: {error}; open the address"))?,
        }
    }
    Ok(Exit::Done)
}

/// Prints a token for the page, which asks for it. In its address, other users of this machine could read the token.
fn print_token(kube: &KubeArgs, pod: &ServerPod, io: &mut Io<'_>) -> Result<(), Failure> {
    let namespace = &pod.namespace;
    let made = kubectl(kube)
        .args(["create", "token", VIEWER, "--duration", LIFETIME])
        // No API server takes tokens for this audience, so a pod that only has the label of Decree gains nothing.
        .arg(format!("--audience=decree-server.{namespace}"))
        .arg(format!("--namespace={namespace}"))
        .output()?;
    let text = |bytes: &[u8]| one_line(String::from_utf8_lossy(bytes).trim());
    if made.status.success() {
        writeln!(io.stdout, "Token: {}", text(&made.stdout))?;
        io.stdout.flush()?;
    } else {
        let (pod, said) = (pod.path(), text(&made.stderr));
        io.notice(&format!("the page of pod {pod} asks for a token: {said}"))?;
    }
    Ok(())
}

/// The number of sessions of the server at an admin address. Fails if none answers there.
async fn sessions(admin: SocketAddr) -> Result<u64, String> {
    let page = exchange(&format!("http://{admin}/metrics"), None, ANSWERS_WITHIN).await?;
    let (StatusCode::OK, page) = page else {
        return Err(format!("its metrics cannot be read ({})", page.0));
    };
    let page = String::from_utf8_lossy(&page);
    let line = page
        .lines()
        .find_map(|it| it.strip_prefix("decree_sessions "));
    let number = line.and_then(|number| number.parse().ok());
    number.ok_or_else(|| "this is not the admin port of a server".to_owned())
}

/// The ready pods with a server.
async fn find(args: &ConsoleArgs, io: &mut Io<'_>) -> Result<Vec<ServerPod>, Failure> {
    let cluster = cluster::connect(&args.kube, ANSWERS_WITHIN, io).await?;
    let namespace = args.namespace.as_deref();
    let pods = timeout(ANSWERS_WITHIN, cluster.pods(namespace, SELECTOR)).await;
    let pods = pods.map_err(|_| {
        let cause = "the API server does not answer in time";
        Failure::new(Exit::Unreachable, cause)
    })?;
    let hint = "this takes the permission to list pods; name the namespace of Decree with -n";
    let pods = pods.map_err(|error| resume::refused(error, hint))?;
    let pods = pods.iter().filter_map(ServerPod::read);
    let (ready, others): (Vec<_>, Vec<_>) = pods.partition(|pod| pod.is_ready);
    if !ready.is_empty() {
        return Ok(ready);
    }
    Err(if let Some(pod) = others.first() {
        let cause = format!("the server of pod {} is not ready", pod.path());
        let show = format!("kubectl -n {} describe pod {}", pod.namespace, pod.name);
        Failure::new(Exit::No, cause).hint(show)
    } else {
        let place = namespace.map_or_else(String::new, |name| format!(" in namespace {name}"));
        let cause = format!("no pod with a server of Decree{place} ({SELECTOR})");
        Failure::new(Exit::No, cause)
            .hint("read a cluster without one: decree up --cluster kubernetes")
    })
}

/// Forwards to the first server with a session, or else to the first one that can be reached: an agent that stands by has no session.
async fn choose(kube: &KubeArgs, pods: Vec<ServerPod>) -> Result<Forward, Failure> {
    let (mut first, mut failed) = (None, None);
    for pod in pods {
        match Forward::start(kube, pod).await {
            Ok(forward) => {
                if sessions(forward.local).await.is_ok_and(|number| number > 0) {
                    return Ok(forward);
                }
                first.get_or_insert(forward);
            }
            Err(failure) => {
                failed.get_or_insert(failure);
            }
        }
    }
    let none = || Failure::new(Exit::No, "no server is ready");
    first.ok_or_else(|| failed.unwrap_or_else(none))
}

/// A kubectl whose output is read.
fn kubectl(kube: &KubeArgs) -> Command {
    let mut kubectl = quiet("kubectl");
    kubectl
        .args(kube.of_kubectl())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    kubectl
}

/// A program whose output nobody sees.
fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

impl ServerPod {
    /// Reads a pod; `None` if it has no server.
    fn read(pod: &Value) -> Option<Self> {
        let lists = |part: &str, names: [&str; 2]| {
            let lists = names.map(|name| pod[part][name].as_array());
            lists.into_iter().flatten().flatten()
        };
        let mut containers = lists("spec", ["initContainers", "containers"]);
        let server = containers.find(|it| it["name"] == SERVER)?;
        let flags = server["args"].as_array().into_iter().flatten();
        let mut flags = flags.rev();
        let admin = flags.find_map(|flag| flag.as_str()?.strip_prefix("--admin="));
        let port = admin.and_then(|admin| admin.rsplit_once(':')?.1.parse().ok());
        let mut statuses = lists("status", ["initContainerStatuses", "containerStatuses"]);
        let is_ready = statuses.any(|it| it["name"] == SERVER && it["ready"] == true);
        let text = |name: &str| Some(pod["metadata"][name].as_str()?.to_owned());
        Some(Self {
            namespace: text("namespace")?,
            name: text("name")?,
            admin_port: port.unwrap_or(ADMIN_PORT),
            is_ready: is_ready && pod["metadata"]["deletionTimestamp"].is_null(),
            is_on_host: pod["spec"]["hostNetwork"] == true,
        })
    }

    fn path(&self) -> String {
        one_line(&format!("{}/{}", self.namespace, self.name))
    }
}

impl Forward {
    /// From the usual address, so that a page can be opened again; from a free one where another process listens there.
    async fn start(kube: &KubeArgs, pod: ServerPod) -> Result<Self, Failure> {
        let is_taken = || TcpListener::bind((Ipv4Addr::LOCALHOST, ADMIN_PORT)).is_err();
        match Self::start_at(ADMIN_PORT, kube, pod.clone()).await {
            Err(_) if is_taken() => Self::start_at(0, kube, pod).await,
            started => started,
        }
    }

    async fn start_at(port: u16, kube: &KubeArgs, pod: ServerPod) -> Result<Self, Failure> {
        let started = kubectl(kube)
            .args([
                "port-forward",
                "--address=127.0.0.1",
                &format!("--namespace={}", pod.namespace),
                &format!("pod/{}", pod.name),
                &format!("{port}:{}", pod.admin_port),
            ])
            .spawn();
        let mut kubectl = started.map_err(|error| {
            Failure::new(Exit::Usage, format!("kubectl: {error}"))
                .hint("install kubectl: it forwards the port of the pod")
        })?;
        let (stdout, stderr) = (kubectl.stdout.take(), kubectl.stderr.take());
        let (told, first) = oneshot::channel();
        thread::spawn(move || {
            let mut lines = stdout.into_iter().flat_map(lines);
            let _ = told.send(lines.next());
            // Reads on, so that the pipe never fills up.
            lines.for_each(drop);
        });
        let errors = thread::spawn(move || stderr.into_iter().flat_map(lines).last());
        let mut forward = Self {
            kubectl,
            errors: Some(errors),
            pod,
            local: (Ipv4Addr::LOCALHOST, port).into(),
        };
        let line = timeout(FORWARDS_WITHIN, first).await;
        let line = line.ok().and_then(Result::ok).flatten().unwrap_or_default();
        let Some(local) = address(&line) else {
            return Err(forward.ended());
        };
        forward.local = local;
        Ok(forward)
    }

    /// Ends it, and returns why it did not last.
    fn ended(mut self) -> Failure {
        let _ = self.kubectl.kill();
        let said = self.errors.take().and_then(|errors| errors.join().ok()?);
        let said = said.unwrap_or_else(|| "kubectl forwards nothing".to_owned());
        let pod = self.pod.path();
        let failure = Failure::new(Exit::Unreachable, format!("pod {pod}: {said}"));
        failure.hint("this takes the permission to create pods/portforward; to connect again, repeat the command")
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}

fn lines(pipe: impl Read) -> impl Iterator<Item = String> {
    BufReader::new(pipe).lines().map_while(io::Result::ok)
}

/// The address in the first line of kubectl, such as `Forwarding from 127.0.0.1:8080 -> 8080`.
fn address(line: &str) -> Option<SocketAddr> {
    let (address, _) = line.strip_prefix("Forwarding from ")?.split_once(" -> ")?;
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_has_a_server_if_a_container_is_called_so() {
        let server = |flags: &[&str]| json!([{"name": "agent"}, {"name": "server", "args": flags}]);
        let ready = |is_ready: bool| json!([{"name": "server", "ready": is_ready}]);
        let flag = "--admin=0.0.0.0:9090";
        // Containers, their states, and whether the pod is being deleted; then the admin port, and whether the server is ready.
        let table = [
            (server(&[]), ready(true), false, Some((8080, true))),
            (
                server(&["-x", flag]),
                ready(true),
                false,
                Some((9090, true)),
            ),
            (
                server(&[flag, "--admin=[::]:1"]),
                ready(false),
                false,
                Some((1, false)),
            ),
            (server(&[flag]), Value::Null, false, Some((9090, false))),
            (server(&[flag]), ready(true), true, Some((9090, false))),
            (json!([{"name": "agent"}]), ready(true), false, None),
        ];
        for [containers, statuses] in [
            ["containers", "containerStatuses"],
            ["initContainers", "initContainerStatuses"],
        ] {
            for (of, states, is_deleted, expected) in &table {
                let deleted = is_deleted.then_some("2026-05-01T12:00:00Z");
                let pod = json!({
                    "metadata": {"namespace": "a", "name": "b", "deletionTimestamp": deleted},
                    "spec": {containers: of},
                    "status": {statuses: states},
                });
                let found = ServerPod::read(&pod);
                let found = found.map(|it| (it.admin_port, it.is_ready));
                assert_eq!(found, *expected, "{pod}");
            }
        }
    }

    #[test]
    fn address_is_in_the_first_line_of_kubectl() {
        let line = "Forwarding from 127.0.0.1:41234 -> 8080";
        assert_eq!(address(line), "127.0.0.1:41234".parse().ok());
        for line in ["", "error: no", "Forwarding from here -> 8080"] {
            assert_eq!(address(line), None, "{line}");
        }
    }
}

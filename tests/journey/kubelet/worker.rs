//! The life of one pod on its node.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::real::Patch;
use tokio::time;

use super::{
    container::{Container, Part},
    manifests,
    node::Node,
    process::{Mount, Plan},
    sandbox::Sandbox,
    services::Endpoint,
    shared::{Place, Shared},
    status,
    volumes::{self, Maker},
};

const TICK: Duration = Duration::from_millis(100);
/// The content of an image by deploy/Containerfile, and its user.
const PROGRAMS: [&str; 3] = ["decree", "decree-agent", "decree-server"];
const ENTRYPOINT: &str = "/decree-server";
const USER: u64 = 65532;

/// Runs a pod until it is gone, or its node is.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    node: Arc<Node>,
    pod: Value,
    uid: String,
    folder: TempDir,
    sandbox: Option<Sandbox>,
    volumes: Option<BTreeMap<String, PathBuf>>,
    containers: Vec<Container>,
    conditions: status::Conditions,
    address: String,
}

impl Worker {
    pub(crate) fn of(shared: &Arc<Shared>, node: &Arc<Node>, pod: Value) -> io::Result<Self> {
        let list = |key: &str| pod["spec"][key].as_array().cloned().unwrap_or_default();
        let (first, main) = (list("initContainers"), list("containers"));
        let first = first.iter().map(|it| Container::of(it, Part::Sidecar));
        let main = main.iter().map(|it| Container::of(it, Part::Main));
        Ok(Self {
            shared: Arc::clone(shared),
            node: Arc::clone(node),
            uid: text(&pod["metadata"], "uid"),
            folder: TempDir::with_prefix("decree-pod-")?,
            sandbox: None,
            volumes: None,
            containers: first.chain(main).collect(),
            conditions: status::Conditions::new(),
            address: shared.address(),
            pod,
        })
    }

    /// Follows the API server's state of the pod, until the pod is gone.
    pub(crate) async fn run(mut self) {
        let mut ticks = time::interval(TICK);
        while self.node.is_up() {
            ticks.tick().await;
            let Some(pod) = self.shared.pod(&self.uid) else {
                if manifests::is_static(&self.pod) {
                    self.end().await;
                }
                break;
            };
            self.pod = pod;
            if !self.pod["metadata"]["deletionTimestamp"].is_null() {
                self.end().await;
                break;
            }
            self.prepare().await;
            self.start_what_is_due();
            if let Some(sandbox) = &self.sandbox {
                let network = Arc::clone(sandbox.network());
                for container in &mut self.containers {
                    container.probe(&network).await;
                }
            }
            self.report().await;
        }
        self.shared.services.remove(&self.uid);
        self.shared.forget(&self.uid);
    }

    /// Makes the requirements of containers before they start, and follows their changes.
    async fn prepare(&mut self) {
        let sandbox = match self.sandbox.take() {
            Some(mut sandbox) => sandbox.follow().map(|()| sandbox),
            None => self.make_sandbox(),
        };
        match sandbox {
            Ok(sandbox) => self.sandbox = Some(sandbox),
            Err(error) => return self.all_wait("SandboxFailed", &error.to_string()),
        }
        if self.volumes.is_none() {
            let maker = Maker {
                api: &self.shared.api,
                pod: &self.pod,
                folder: &self.folder.path().join("volumes"),
                host: self.node.host(),
            };
            match maker.make().await {
                Ok(made) => self.volumes = Some(made),
                Err(why) => self.all_wait("ContainerCreating", &why),
            }
        }
    }

    fn make_sandbox(&self) -> io::Result<Sandbox> {
        let network = self.node.network(self.pod["spec"]["hostNetwork"] == true)?;
        let namespace = text(&self.pod["metadata"], "namespace");
        let folder = self.folder.path();
        fs::write(folder.join("nsswitch.conf"), "hosts: files\n")?;
        let own_ports = self
            .ports()
            .filter_map(|port| port_number(&port["containerPort"]));
        let pod = (&*namespace, own_ports.collect());
        Sandbox::create(network, &self.shared.services, pod, folder)
    }

    /// The ports of all containers in the pod's spec.
    fn ports(&self) -> impl Iterator<Item = &Value> {
        let containers = self.containers.iter();
        containers.flat_map(|it| it.spec()["ports"].as_array().into_iter().flatten())
    }

    fn all_wait(&mut self, reason: &'static str, why: &str) {
        for container in &mut self.containers {
            if !container.is_running() {
                container.waits(reason, why.to_owned());
            }
        }
    }

    /// Starts the containers that may start: sidecars in their order, each once the one before is started, and then the others.
    fn start_what_is_due(&mut self) {
        let mut goes_on = true;
        for at in 0..self.containers.len() {
            self.containers[at].notice_end();
            let container = &self.containers[at];
            let again = self.restarts(container) || container.code().is_none();
            if goes_on && again && container.is_due() {
                match self.plan(container) {
                    Ok(plan) => self.containers[at].start(plan),
                    Err((reason, why)) => self.containers[at].waits(reason, why),
                }
            }
            let container = &self.containers[at];
            goes_on &= container.part == Part::Main || container.is_started();
        }
    }

    /// Whether a container restarts after its end.
    fn restarts(&self, container: &Container) -> bool {
        container.part == Part::Sidecar || self.pod["spec"]["restartPolicy"] == "Always"
    }

    fn plan(&self, container: &Container) -> Result<Plan, (&'static str, String)> {
        let spec = container.spec();
        let waits = |why: &str| ("ContainerCreating", why.to_owned());
        let (sandbox, volumes) = self
            .sandbox
            .as_ref()
            .zip(self.volumes.as_ref())
            .ok_or_else(|| waits("its volumes are not there"))?;
        let image = text(spec, "image");
        let programs = self.shared.images.get(&image);
        let programs = programs.ok_or_else(|| ("ErrImagePull", format!("no image {image}")))?;
        let file = |from: PathBuf, to: String| Mount {
            from,
            to,
            is_read_only: true,
        };
        let mut mounts: Vec<_> = PROGRAMS
            .map(|name| file(programs.join(name), format!("/{name}")))
            .into();
        mounts.push(file(sandbox.hosts().to_owned(), "/etc/hosts".to_owned()));
        let names = self.folder.path().join("nsswitch.conf");
        mounts.push(file(names, "/etc/nsswitch.conf".to_owned()));
        for mount in spec["volumeMounts"].as_array().into_iter().flatten() {
            let from = volumes.get(&text(mount, "name"));
            mounts.push(Mount {
                from: from.ok_or_else(|| waits("it has no such volume"))?.clone(),
                to: text(mount, "mountPath"),
                is_read_only: mount["readOnly"] == true,
            });
        }
        let name = container.name();
        let root = self.folder.path().join(format!("root-{name}"));
        fs::create_dir_all(&root).map_err(|error| waits(&error.to_string()))?;
        let security = &self.pod["spec"]["securityContext"];
        let number = |key: &str| security[key].as_u64();
        Ok(Plan {
            network: sandbox.network().path(),
            hostname: self.hostname(),
            root,
            log: self.folder.path().join(format!("{name}.log")),
            mounts,
            has_writable_root: spec["securityContext"]["readOnlyRootFilesystem"] != true,
            user: number("runAsUser").unwrap_or(USER),
            group: number("runAsGroup").unwrap_or(USER),
            groups: number("fsGroup").into_iter().collect(),
            env: self.env(spec).map_err(|why| waits(&why))?,
            command: command(spec),
        })
    }

    /// The name of the pod; in the network of its node, the node's.
    fn hostname(&self) -> String {
        if self.pod["spec"]["hostNetwork"] == true {
            self.node.name().to_owned()
        } else {
            text(&self.pod["metadata"], "name")
        }
    }

    fn env(&self, spec: &Value) -> Result<Vec<(String, String)>, String> {
        let mut env = vec![
            ("HOSTNAME".to_owned(), self.hostname()),
            ("KUBERNETES_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned()),
            ("KUBERNETES_SERVICE_PORT".to_owned(), "443".to_owned()),
        ];
        for variable in spec["env"].as_array().into_iter().flatten() {
            let told = &variable["valueFrom"]["fieldRef"]["fieldPath"];
            let value = match told.as_str() {
                Some(path) => volumes::field(&self.pod, path)?,
                None => env
                    .iter()
                    .fold(text(variable, "value"), |value, (name, set)| {
                        value.replace(&format!("$({name})"), set)
                    }),
            };
            env.push((text(variable, "name"), value));
        }
        Ok(env)
    }

    /// Reports changes of its state to the API server and to Services.
    async fn report(&mut self) {
        let (name, namespace) = self.names();
        let mains = || self.containers.iter().filter(|it| it.part == Part::Main);
        let is_ready = mains().all(Container::is_ready);
        let places = self.containers.iter().filter_map(|container| {
            let (plan, pid) = container.started()?;
            let sandbox = self.sandbox.as_ref()?;
            Some(Place {
                uid: self.uid.clone(),
                namespace: namespace.clone(),
                pod: name.clone(),
                container: container.name().to_owned(),
                plan: plan.clone(),
                network: Arc::clone(sandbox.network()),
                pid,
            })
        });
        self.shared.place(&self.uid, places.collect());
        self.answer(is_ready);
        let is_initialized = self.containers.iter().all(Container::is_started);
        let conditions = self.conditions.told(is_ready, is_initialized);
        let mains = || self.containers.iter().filter(|it| it.part == Part::Main);
        let again = |it: &Container| self.restarts(it);
        let of = |part: Part| {
            let each = self.containers.iter().filter(move |it| it.part == part);
            each.map(|it| it.status(again(it))).collect::<Vec<_>>()
        };
        let codes: Option<Vec<_>> = mains()
            .map(|it| it.code().filter(|_| !it.is_running() && !again(it)))
            .collect();
        let phase = match codes {
            Some(codes) if codes.iter().all(|code| *code == 0) => "Succeeded",
            Some(_) => "Failed",
            None if mains().any(Container::is_running) => "Running",
            None => "Pending",
        };
        let status = json!({
            "phase": phase,
            "hostIP": self.node.address(), "podIP": self.address, "podIPs": [{"ip": self.address}],
            "startTime": self.conditions.since(),
            "conditions": conditions,
            "initContainerStatuses": of(Part::Sidecar),
            "containerStatuses": of(Part::Main),
        });
        let Some(shown) = self.shown().await else {
            return;
        };
        if !status::says(&shown["status"], &status) {
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status");
            let patch = json!({"metadata": {"uid": shown["metadata"]["uid"]}, "status": status});
            // A failed report is repeated, because the pod does not show it.
            let _ = self.shared.api.patch(&path, Patch::Merge, &patch).await;
        }
    }

    /// The API server's state of the pod. `None` before the mirror of a static pod exists.
    async fn shown(&self) -> Option<Value> {
        if !manifests::is_static(&self.pod) {
            return Some(self.pod.clone());
        }
        let mirror = self.shared.mirror_of(&self.pod);
        match &mirror {
            None => manifests::mirror(&self.shared.api, &self.pod).await,
            Some(mirror) if !manifests::shows(mirror, &self.pod) => self.delete(mirror).await,
            Some(_) => return mirror,
        }
        None
    }

    /// Deletes the pod on the API server, without a grace period. A failed request is repeated later.
    async fn delete(&self, shown: &Value) {
        let (name, namespace) = self.names();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let uid = &shown["metadata"]["uid"];
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        let _ = self.shared.api.delete(&path, &options).await;
    }

    /// Makes the pod an endpoint of Services, while it is ready.
    fn answer(&self, is_ready: bool) {
        let Some(sandbox) = &self.sandbox else {
            return;
        };
        let ports = self.ports().filter_map(|port| {
            let name = port["name"].as_str()?.to_owned();
            Some((name, port_number(&port["containerPort"])?))
        });
        let is_of_node = self.pod["spec"]["hostNetwork"] == true;
        let endpoint = Endpoint {
            namespace: text(&self.pod["metadata"], "namespace"),
            labels: self.pod["metadata"]["labels"].clone(),
            address: self.address.parse().ok().filter(|_| !is_of_node),
            ports: ports.collect(),
            network: Arc::clone(sandbox.network()),
            is_ready,
        };
        self.shared.services.add(&self.uid, endpoint);
    }

    /// Ends its containers within its grace period, sidecars last, and then the pod itself.
    async fn end(&mut self) {
        self.answer(false);
        let told = &self.pod["metadata"]["deletionGracePeriodSeconds"];
        let own = &self.pod["spec"]["terminationGracePeriodSeconds"];
        let grace = told.as_u64().or(own.as_u64());
        let until = Instant::now() + Duration::from_secs(grace.unwrap_or(30));
        let mut ticks = time::interval(TICK);
        for part in [Part::Main, Part::Sidecar] {
            self.signal(part, "TERM");
            while self.node.is_up() && self.runs(part) {
                ticks.tick().await;
                let is_static = manifests::is_static(&self.pod);
                let is_forced = !is_static && self.shared.pod(&self.uid).is_none();
                if Instant::now() >= until || is_forced {
                    self.signal(part, "KILL");
                }
            }
        }
        while self.node.is_up() {
            let shown = if manifests::is_static(&self.pod) {
                self.shared.mirror_of(&self.pod)
            } else {
                self.shared.pod(&self.uid)
            };
            let Some(shown) = shown else {
                break;
            };
            self.delete(&shown).await;
            ticks.tick().await;
        }
    }

    fn signal(&mut self, part: Part, name: &str) {
        for container in &mut self.containers {
            if container.part == part {
                container.signal(name);
            }
        }
    }

    fn runs(&mut self, part: Part) -> bool {
        for container in &mut self.containers {
            container.notice_end();
        }
        let mut parts = self.containers.iter().filter(|it| it.part == part);
        parts.any(Container::is_running)
    }

    fn names(&self) -> (String, String) {
        let metadata = &self.pod["metadata"];
        (text(metadata, "name"), text(metadata, "namespace"))
    }
}

/// The command of a container, or of its image if it has none.
fn command(spec: &Value) -> Vec<String> {
    let words = |key: &str| {
        let list = spec[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned)
    };
    let mut command: Vec<_> = words("command").collect();
    if command.is_empty() {
        command.push(ENTRYPOINT.to_owned());
    }
    command.extend(words("args"));
    command
}

fn port_number(port: &Value) -> Option<u16> {
    port.as_u64().and_then(|it| u16::try_from(it).ok())
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

//! `decree console` on a real API server. No kubelet forwards ports here: a script in the place of kubectl names a server of this machine.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    binaries,
    real::{Agent, Api, ApiServer, DecisionServer, Namespace, Patch, User},
    running::{Running, Voice, until_found},
};

use crate::{manifests::FOLDERS, rendered::Rendered};

/// Forwards a pod to the address that the file `forwards` has for it. Each line of the file `asked` has its process and its arguments.
const KUBECTL: &str = r#"#!/bin/sh
echo "$$ $*" >> "$STAGE/asked"
for word; do case "$word" in pod/*) pod=${word#pod/};; esac; done
address=$(sed -n "s/^$pod //p" "$STAGE/forwards")
if [ -z "$address" ]; then echo "error: the pod is not running" >&2; exit 1; fi
echo "Forwarding from $address -> 8080"
exec sleep 600
"#;
const BROWSER: &str = r#"#!/bin/sh
echo "$1" > "$STAGE/new" && mv "$STAGE/new" "$STAGE/opened"
"#;
const STATIC: &str = "deploy/static-pods/decree.yaml";

/// A folder with scripts in the place of kubectl and a browser.
struct Stage {
    folder: TempDir,
    kubeconfig: PathBuf,
}

// === impl Stage ===

impl Stage {
    fn new(kubeconfig: PathBuf, forwards: &str) -> Self {
        let folder = TempDir::with_prefix("decree-console-").expect("there is room");
        let stage = Self { folder, kubeconfig };
        for (name, script) in [("kubectl", KUBECTL), ("xdg-open", BROWSER)] {
            fs::write(stage.file(name), script).expect("there is room");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(stage.file(name), mode).expect("it is ours");
        }
        fs::write(stage.file("forwards"), forwards).expect("there is room");
        stage
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(binaries::folder().join("decree"));
        let before = env::var_os("PATH").unwrap_or_default();
        let path = [self.folder.path().to_owned()].into_iter();
        let path = env::join_paths(path.chain(env::split_paths(&before)));
        command
            .arg("console")
            .args(flags)
            .env("STAGE", self.folder.path())
            .env("PATH", path.expect("no folder has a colon"));
        command
    }

    /// Opens the console of a namespace. Returns what is printed, the address that the browser opens, and the last arguments of kubectl.
    fn open(&self, namespace: &str) -> [String; 3] {
        let _ = fs::remove_file(self.file("opened"));
        let kubeconfig = self.kubeconfig.to_string_lossy();
        let flags = ["--kubeconfig", &*kubeconfig, "-n", namespace];
        let running = Running::start(self.command(&flags), Voice::Stdout);
        let line = running.wait_for("the address", |lines| lines.first().cloned());
        let opened = until_found("the browser", || match self.read("opened") {
            opened if opened.is_empty() => Err(self.read("asked")),
            opened => Ok(opened.trim_end().to_owned()),
        });
        running.terminate();
        assert_eq!(running.wait().code(), Some(0));
        let asked = self.read("asked");
        let processes = asked.lines().filter_map(|line| line.split_once(' '));
        let processes: Vec<_> = processes.collect();
        for (process, _) in &processes {
            assert!(!Path::new("/proc").join(process).exists(), "{asked}");
        }
        let (_, last) = processes.last().expect("it was asked");
        [line, opened, (*last).to_owned()]
    }

    fn ends(&self, flags: &[&str], path: Option<&str>) -> (Option<i32>, String) {
        let mut command = self.command(flags);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let Output { status, stderr, .. } = command.output().expect("it starts");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }
}

/// Makes a pod of a template. Its server is ready.
async fn pod(api: &Api, namespace: &Namespace, name: &str, template: &Value, is_ready: bool) {
    let mut spec = template["spec"].clone();
    spec.as_object_mut()
        .expect("it is a map")
        .retain(|field, _| !field.starts_with("serviceAccount"));
    let labels = &template["metadata"]["labels"];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels}, "spec": spec,
    });
    let created = api.create(&namespace.pod(""), &pod).await;
    created.expect("it is valid");
    let kind = |kind: &str| {
        let containers = pod["spec"][kind].as_array().into_iter().flatten();
        let statuses = containers.map(|it| {
            json!({
                "name": it["name"], "ready": is_ready, "restartCount": 0,
                "image": it["image"], "imageID": "",
            })
        });
        statuses.collect::<Vec<_>>()
    };
    let status = json!({"status": {
        "initContainerStatuses": kind("initContainers"),
        "containerStatuses": kind("containers"),
    }});
    let path = format!("{}/status", namespace.pod(name));
    let patched = api.patch(&path, Patch::Merge, &status).await;
    patched.expect("it is there");
}

/// The template of the pods with a server, of each shipped manifest, with the admin port of the server.
fn templates() -> Option<Vec<(Value, u16)>> {
    let has_server = |template: &Value| {
        let kinds = ["initContainers", "containers"].into_iter();
        let mut containers = kinds
            .flat_map(|kind| template["spec"][kind].as_array())
            .flatten();
        containers.any(|it| it["command"] == json!(["/decree-server"]))
    };
    let mut templates = Vec::new();
    for folder in FOLDERS {
        let rendered = Rendered::of(folder)?;
        let pods = rendered.workloads().map(|it| &it["spec"]["template"]);
        let before = templates.len();
        templates.extend(
            pods.filter(|it| has_server(it))
                .map(|it| (it.clone(), 8080)),
        );
        assert!(templates.len() > before, "{folder} has a server");
    }
    templates.push((static_pod(), 10_281));
    Some(templates)
}

fn static_pod() -> Value {
    let text = fs::read_to_string(binaries::checkout().join(STATIC)).expect("it is there");
    let (_, text) = text.split_once("apiVersion: v1\n").expect("an object");
    serde_saphyr::from_str(text).expect("it is YAML")
}

#[tokio::test(flavor = "multi_thread")]
async fn console_of_each_manifest_is_that_of_the_server_with_a_session() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let templates = tests::or_skip!(templates());
    let admin = cluster.admin().await;
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let [idle, busy] = [DecisionServer::start(), DecisionServer::start()];
    let [of_idle, of_busy] = [&idle, &busy].map(|it| it.running().address("admin"));
    let flags = ["--mode", "shadow", "--leader-elect=false"];
    let _agent = Agent::start(&busy, &kubeconfig, &flags);
    until_found("the session", || match busy.metric("decree_sessions") {
        1 => Ok(()),
        number => Err(number),
    });
    let stage = Stage::new(
        kubeconfig,
        &format!("decree-a {of_idle}\ndecree-b {of_busy}\n"),
    );
    for (at, (template, port)) in templates.iter().enumerate() {
        let namespace = Namespace::create(admin.clone(), &format!("console-{at}")).await;
        let place = namespace.name();
        for name in ["decree-a", "decree-b"] {
            pod(&admin, &namespace, name, template, true).await;
        }
        let [line, opened, asked] = stage.open(place);
        let url = format!("http://{of_busy}/console/");
        let expected = format!("Console: {url}, from pod {place}/decree-b until Ctrl-C");
        assert_eq!((line, opened), (expected, url));
        let expected =
            format!("port-forward --address=127.0.0.1 --namespace={place} pod/decree-b ");
        assert!(
            asked.contains(&expected) && asked.ends_with(&format!(":{port}")),
            "{asked}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn console_says_what_it_lacks() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let templates = tests::or_skip!(templates());
    let admin = cluster.admin().await;
    let [kubeconfig, nobody] = [User::Admin, User::Nobody].map(|it| cluster.kubeconfig(it));
    let [user, nobody] = [&kubeconfig, &nobody].map(|it| it.to_string_lossy().into_owned());
    let namespace = Namespace::create(admin.clone(), "console-lacks").await;
    let stage = Stage::new(kubeconfig, "");
    let ends = |user: &str, path| {
        let flags = ["--kubeconfig", user, "-n", "console-lacks"];
        stage.ends(&flags, path)
    };
    let (code, said) = ends(&user, None);
    let none = "error: no pod with a server of Decree in namespace console-lacks (app.kubernetes.io/name=decree)\n";
    assert!(code == Some(1) && said.contains(none), "{said}");
    let (code, said) = ends(&nobody, None);
    let hint = "name the namespace of Decree with -n\n";
    assert!(
        code == Some(4) && said.contains("forbidden") && said.ends_with(hint),
        "{said}"
    );

    let (template, _) = &templates[0];
    pod(&admin, &namespace, "decree-a", template, false).await;
    let (code, said) = ends(&user, None);
    let hint = "the server of pod console-lacks/decree-a is not ready\nhint: kubectl -n console-lacks describe pod decree-a\n";
    assert!(code == Some(1) && said.ends_with(hint), "{said}");
    let (template, _) = templates.last().expect("the static pod");
    pod(&admin, &namespace, "decree-b", template, true).await;
    let (code, said) = ends(&user, None);
    let cause = "error: pod console-lacks/decree-b: error: the pod is not running\nhint: this takes the permission to create pods/portforward";
    assert!(code == Some(3) && said.contains(cause), "{said}");
    let (code, said) = ends(&user, Some("/nowhere"));
    assert!(
        code == Some(2) && said.contains("error: kubectl: "),
        "{said}"
    );
}

#[test]
fn console_of_this_machine_needs_no_cluster() {
    let server = DecisionServer::start();
    let stage = Stage::new(PathBuf::new(), "");
    let address = server.running().address("admin");
    let mut command = stage.command(&["--admin", &address, "--no-browser"]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, format!("Console: http://{address}/console/\n"));
    assert!(stage.read("opened").is_empty() && stage.read("asked").is_empty());
    let (code, said) = stage.ends(&["--admin", server.address()], None);
    let cause = "the port does not speak HTTP/1.1";
    assert!(code == Some(3) && said.contains(cause), "{said}");
}

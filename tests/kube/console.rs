//! `decree console` on a real API server. No kubelet runs pods here: the tier `journey` forwards their ports.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    binaries,
    real::{Api, ApiServer, DecisionServer, Namespace, User},
    running::until_found,
    tools,
};

use crate::{
    manifests::{FOLDERS, server_of, static_pod},
    rendered::Rendered,
};

/// Writes the opened address to a file.
const BROWSER: &str = r#"#!/bin/sh
echo "$1" > "$OPENED.new" && mv "$OPENED.new" "$OPENED"
"#;

/// A folder with a script in the place of a browser.
struct Stage {
    folder: TempDir,
    path: OsString,
}

impl Stage {
    /// With programs of another folder.
    fn new(others: &Path) -> Self {
        let folder = TempDir::with_prefix("decree-console-").expect("there is room");
        let before = env::var_os("PATH").unwrap_or_default();
        let first = [folder.path().to_owned(), others.to_owned()].into_iter();
        let path = env::join_paths(first.chain(env::split_paths(&before)));
        let path = path.expect("no folder has a colon");
        let stage = Self { folder, path };
        stage.add("xdg-open", BROWSER);
        stage
    }

    /// Adds a program, which is found before all others of its name.
    fn add(&self, name: &str, script: &str) {
        let program = self.folder.path().join(name);
        fs::write(&program, script).expect("there is room");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, mode).expect("it is ours");
    }

    /// The file with the address that the browser opened last.
    fn opened(&self) -> PathBuf {
        self.folder.path().join("opened")
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(binaries::folder().join("decree"));
        command
            .arg("console")
            .args(flags)
            .env("OPENED", self.opened())
            .env("PATH", &self.path);
        command
    }
}

/// Runs a command to its end. Returns its code and its errors.
fn ends(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// Makes a pod of a template.
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
    api.make(&namespace.pod(""), &pod).await;
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
    api.change(&path, &status).await;
}

/// The template of the pods with a server, of each shipped manifest.
fn templates() -> Option<Vec<Value>> {
    let mut templates = vec![static_pod()];
    for folder in FOLDERS {
        let rendered = Rendered::of(folder)?;
        let pods = rendered.workloads().map(|it| &it["spec"]["template"]);
        let before = templates.len();
        templates.extend(pods.filter(|it| server_of(it).is_some()).cloned());
        assert!(templates.len() > before, "{folder} has a server");
    }
    Some(templates)
}

#[tokio::test(flavor = "multi_thread")]
async fn console_finds_the_server_of_each_manifest_and_says_what_it_lacks() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let templates = tests::or_skip!(templates());
    let kubectls = tests::or_skip!(tools::kubectls());
    let stage = Stage::new(kubectls[0].parent().expect("it is a file"));
    let admin = cluster.admin().await;
    let [user, nobody] = [User::Admin, User::Nobody].map(|it| cluster.kubeconfig(it));
    let command = |user: &Path, place: &str| {
        let user = user.to_string_lossy();
        stage.command(&["--kubeconfig", &user, "-n", place])
    };
    let namespace = Namespace::create(admin.clone(), "console-lacks").await;
    let place = namespace.name();
    let (code, said) = ends(&mut command(&user, place));
    let none = "error: no pod with a server of Decree in namespace console-lacks (app.kubernetes.io/name=decree)\n";
    assert!(code == Some(1) && said.contains(none), "{said}");
    let (code, said) = ends(&mut command(&nobody, place));
    let hint = "name the namespace of Decree with -n\n";
    let is_refused = said.contains("forbidden") && said.ends_with(hint);
    assert!(code == Some(4) && is_refused, "{said}");

    pod(&admin, &namespace, "decree-a", &templates[0], false).await;
    let (code, said) = ends(&mut command(&user, place));
    let hint = "the server of pod console-lacks/decree-a is not ready\nhint: kubectl -n console-lacks describe pod decree-a\n";
    assert!(code == Some(1) && said.ends_with(hint), "{said}");
    for (at, template) in templates.iter().enumerate() {
        let namespace = Namespace::create(admin.clone(), &format!("console-{at}")).await;
        let place = namespace.name();
        pod(&admin, &namespace, "decree-b", template, true).await;
        let (code, said) = ends(&mut command(&user, place));
        let cause = format!(
            "error: pod {place}/decree-b: error: unable to forward port because pod is not running. Current status=Pending\nhint: this takes the permission to create pods/portforward"
        );
        assert!(code == Some(3) && said.contains(&cause), "{said}");
    }
    let (code, said) = ends(command(&user, "console-0").env("PATH", "/nowhere"));
    assert!(
        code == Some(2) && said.contains("error: kubectl: "),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn console_passes_over_a_server_that_cannot_be_reached() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let templates = tests::or_skip!(templates());
    let server = DecisionServer::start();
    let address = server.running().address("admin");
    let stage = Stage::new(Path::new("/nowhere"));
    let kubectl = format!(
        "#!/bin/sh\ncase \"$*\" in *pod/decree-a*) exit 1;; esac\necho 'Forwarding from {address} -> 8080'\n"
    );
    stage.add("kubectl", &kubectl);
    let admin = cluster.admin().await;
    let namespace = Namespace::create(admin.clone(), "console-passes").await;
    let place = namespace.name();
    for name in ["decree-a", "decree-b"] {
        pod(&admin, &namespace, name, &templates[1], true).await;
    }
    let user = cluster.kubeconfig(User::Admin);
    let user = user.to_string_lossy();
    let mut command = stage.command(&["--kubeconfig", &user, "-n", place, "--no-browser"]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let found = format!("Console: http://{address}/console/, from pod {place}/decree-b until");
    assert!(said.starts_with(&found), "{said} {output:?}");
}

#[test]
fn console_of_this_machine_needs_no_cluster() {
    let server = DecisionServer::start();
    let stage = Stage::new(Path::new("/nowhere"));
    let address = server.running().address("admin");
    let url = format!("http://{address}/console/\n");
    for flags in [
        &["--admin", &address, "--no-browser"][..],
        &["--admin", &address],
    ] {
        assert!(!stage.opened().exists());
        let output = stage.command(flags).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, format!("Console: {url}"));
    }
    let opened = until_found("the browser", || fs::read_to_string(stage.opened()));
    assert_eq!(opened, url);
    let (code, said) = ends(&mut stage.command(&["--admin", server.address()]));
    let cause = "the port does not speak HTTP/1.1";
    assert!(code == Some(3) && said.contains(cause), "{said}");
}

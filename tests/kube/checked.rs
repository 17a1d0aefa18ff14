//! `decree check` as shipped: with the permissions and settings of each kustomization, and in the pod of `helm test`.

use std::{
    path::Path,
    process::{Command, Output},
    time::Instant,
};

use serde_json::{Value, json};
use tests::{
    binaries,
    real::{Api, ApiServer, LOOK_EVERY, PATIENCE},
};
use tokio::time;

use crate::{
    manifests::FOLDERS,
    rendered::{Rendered, path},
};

/// The kinds of roles and their bindings.
const GRANTS: [&str; 4] = ["RoleBinding", "ClusterRoleBinding", "Role", "ClusterRole"];
/// An address without a listener.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A `decree check` for the agent of a workload.
#[derive(Debug)]
pub(crate) struct Check {
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

// === impl Check ===

impl Check {
    /// The check for the agent of a kustomization, with the credentials and settings of its container.
    fn of_agent(rendered: &Rendered, account: &Path) -> Self {
        let workload = rendered.workload("decree-agent");
        let namespace = &workload["metadata"]["namespace"];
        let container = &workload["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"].as_array().expect("it has arguments");
        let arguments = arguments.iter().filter_map(Value::as_str);
        // The flags that `check` needs too. The other flags do not affect permissions.
        let told = arguments.filter(|flag| flag.starts_with("--resource="));
        let namespace = namespace.as_str().expect("it is text");
        let mut flags = vec![
            "check".to_owned(),
            "--only=cluster".to_owned(),
            "--only=permissions".to_owned(),
            "--only=agent".to_owned(),
            "--only=others".to_owned(),
            "--agent=off".to_owned(),
            format!("--server={NOWHERE}"),
            format!("--kubeconfig={}", account.display()),
            format!("--lease-namespace={namespace}"),
        ];
        flags.extend(told.map(str::to_owned));
        let mut variables = variables(container);
        variables.retain(|(name, _)| name == "DECREE_SHARD");
        for (_, value) in &mut variables {
            *value = value.replace("$(POD_NAME)", "decree-agent-5");
        }
        Self { flags, variables }
    }

    /// The check that a pod runs, with its variables. Its certificates and its server are those of a cluster: `server` answers
    /// instead, in plain text.
    pub(crate) fn of_pod(pod: &Value, account: &Path, server: &str) -> Self {
        let container = &pod["spec"]["containers"][0];
        let command = ["command", "args"].map(|field| container[field].as_array());
        let words = command.into_iter().flatten().flatten();
        let words: Vec<_> = words.map(|it| it.as_str().expect("it is text")).collect();
        assert_eq!(words[0], "/decree", "{pod:#}");
        let mut variables = variables(container);
        variables.retain(|(name, _)| !name.contains("_TLS_") && name != "DECREE_TOKEN_FILE");
        for (_, value) in variables
            .iter_mut()
            .filter(|(name, _)| name == "DECREE_SERVER")
        {
            *value = server.to_owned();
        }
        variables.push(("KUBECONFIG".to_owned(), account.display().to_string()));
        let flags = words[1..].iter().map(|&word| word.to_owned()).collect();
        Self { flags, variables }
    }

    fn run(&self) -> Output {
        let mut command = Command::new(binaries::folder().join("decree"));
        command.args(&self.flags).args(["-o", "json"]);
        command.env_remove("DECREE_SERVER");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.output().expect("it was built")
    }

    /// Waits until the check passes, since the API server learns of roles a moment later, and returns the findings.
    pub(crate) async fn passes(&self) -> Vec<Value> {
        self.ends("passes", |code, _| code == Some(0)).await
    }

    /// Waits until the check reports this number of missing permissions.
    async fn lacks_all(&self, permissions: usize) {
        self.ends("lacks all", |code, found| {
            let missing = found.iter().filter(|it| is_missing(it));
            code == Some(1) && missing.count() == permissions
        })
        .await;
    }

    async fn ends(&self, what: &str, is_so: impl Fn(Option<i32>, &[Value]) -> bool) -> Vec<Value> {
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let output = self.run();
            let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if is_so(output.status.code(), &found) {
                return found;
            }
            assert!(Instant::now() < until, "never {what}: {self:?}: {output:?}");
        }
    }
}

fn variables(container: &Value) -> Vec<(String, String)> {
    let variables = container["env"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    let variables = variables.filter(|it| it["value"].is_string());
    variables
        .map(|it| (text(&it["name"]), text(&it["value"])))
        .collect()
}

/// Whether a finding reports a missing permission.
fn is_missing(finding: &Value) -> bool {
    let check = finding["check"].as_str();
    finding["detail"] == "not granted" && check.is_some_and(|check| check.starts_with("may "))
}

pub(crate) fn detail<'a>(found: &'a [Value], check: &str) -> &'a str {
    let finding = found.iter().find(|it| it["check"] == check);
    let finding = finding.unwrap_or_else(|| panic!("{check} is not in {found:#?}"));
    finding["detail"].as_str().expect("it is text")
}

/// Deletes all roles and bindings.
async fn take_grants(rendered: &Rendered, admin: &Api) {
    for object in GRANTS.iter().flat_map(|kind| rendered.all(kind)) {
        let deleted = admin.delete(&path(object), &json!({})).await;
        deleted.unwrap_or_else(|refusal| panic!("{refusal:?}: {object}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_passes_with_the_permissions_that_each_kustomization_ships() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    for folder in FOLDERS {
        let rendered = tests::or_skip!(Rendered::of(folder));
        rendered.apply(&admin).await;
        let namespace = &rendered.workload("decree-agent")["metadata"]["namespace"];
        let namespace = namespace.as_str().expect("it is text");
        let account = cluster.service_account(namespace, "decree-agent").await;
        let check = Check::of_agent(&rendered, &account);
        let found = check.passes().await;
        let permissions = match folder {
            "overlays/sharded" => 22,
            "overlays/custom-resource" => 16,
            _ => 20,
        };
        let all = format!("all {permissions} are granted");
        assert_eq!(detail(&found, "permissions"), all, "{folder}");
        // So the next kustomization has only its own permissions.
        take_grants(&rendered, &admin).await;
        check.lacks_all(permissions).await;
    }
}

#[test]
fn check_of_a_server_needs_no_credentials_of_a_cluster() {
    let server = tests::real::DecisionServer::start();
    let empty = tempfile::TempDir::with_prefix("decree-check-").expect("there is room");
    let check = |flags: &[&str]| {
        let mut command = Command::new(binaries::folder().join("decree"));
        command.args(["check", "-o", "json"]).args(flags);
        // As in the container of a server of the overlay all-in-one.
        command.env_remove("KUBECONFIG").env("HOME", empty.path());
        command.env("DECREE_SERVER", server.url());
        command.output().expect("it was built")
    };
    let output = check(&["--only", "server"]);
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let checks: Vec<_> = found.iter().map(|it| it["check"].clone()).collect();
    assert_eq!(checks, ["server", "versions"]);
    assert_eq!(check(&[]).status.code(), Some(1), "credentials are missing");
}

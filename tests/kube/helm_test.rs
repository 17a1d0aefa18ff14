//! `helm test`: its pod is admitted where pods are restricted, and its command passes with the credentials and variables of the
//! pod.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use tests::{
    binaries,
    real::{Api, ApiServer, DecisionServer, User, found},
};

use crate::{
    helm::succeeds,
    rendered::{CUSTOM_SYSTEM, Rendered, SYSTEM},
};

const CHART: &str = "deploy/helm/decree";

/// Values of the chart, and the number of permissions of the agent: 0 if one is granted in single namespaces.
const RELEASES: &str = "
 => 20
workload=StatefulSet,agent.args={--lease-name=other} => 20
agent.args={--shard=canary} => 20
agent.args={--mode=shadow,--lease-namespace=decree-system} => 8
workload=StatefulSet,advise=true => 0
topology=separate => 20
topology=separate,tokens.enabled=true => 20
topology=separate,agent.replicas=8,shards=4,autoscaler.enabled=true => 22
workload=StatefulSet,customResource=true => 16";

/// A `decree check` of a pod.
#[derive(Debug)]
struct Check {
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Check {
    /// The check that a pod runs, with its variables. Its certificates and its server are those of a cluster: `server` answers
    /// instead, in plain text.
    fn of_pod(pod: &Value, account: &Path, server: &str) -> Self {
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
    async fn passes(&self) -> Vec<Value> {
        found(async || {
            let output = self.run();
            if output.status.success() {
                return Ok(serde_json::from_slice(&output.stdout).expect("it is JSON"));
            }
            Err(format!("{self:?}: {output:?}"))
        })
        .await
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

fn detail<'a>(found: &'a [Value], check: &str) -> &'a str {
    let finding = found.iter().find(|it| it["check"] == check);
    let finding = finding.unwrap_or_else(|| panic!("{check} is not in {found:#?}"));
    finding["detail"].as_str().expect("it is text")
}

#[tokio::test(flavor = "multi_thread")]
async fn command_of_helm_test_passes_in_each_topology() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    let server = DecisionServer::start();
    let helm = |args: &[&str]| succeeds(args, Some(cluster.kubeconfig(User::Admin)));
    for row in RELEASES.lines().skip(1) {
        let (values, permissions) = row.split_once(" => ").expect("two columns");
        let is_custom = values.contains("customResource=true");
        let namespace = if is_custom { CUSTOM_SYSTEM } else { SYSTEM };
        let place = ["-n", namespace];
        let chart = ["decree", CHART, "--set", values];
        let install = [&["install", "--create-namespace"], &chart[..], &place].concat();
        if helm(&install).is_none() {
            return;
        }
        let test = ["--show-only", "templates/tests/check.yaml"];
        let test = [&["template"], &chart[..], &place, &test].concat();
        let rendered = Rendered::read(&helm(&test).expect("helm is there"));
        let pod = rendered.one("Pod", "decree-check");
        assert_eq!(pod["spec"]["serviceAccountName"], "decree-agent");
        let tolerates = pod["spec"]["tolerations"].is_array();
        let is_daemon = !values.contains("workload=") && !is_asked(values);
        assert_eq!(tolerates, is_daemon, "{values}: as the agents");
        is_admitted(&admin, pod, namespace).await;

        let account = cluster.service_account(namespace, "decree-agent").await;
        let found = Check::of_pod(pod, &account, &server.url()).passes().await;
        let (check, said) = match permissions {
            "0" => ("may patch pods", "not granted in all namespaces".to_owned()),
            number => ("permissions", format!("all {number} are granted")),
        };
        assert_eq!(detail(&found, check), said, "{values}");
        let asked = found.iter().any(|it| it["check"] == "server");
        assert_eq!(asked, is_asked(values), "{values}");
        helm(&[&["uninstall", "decree"], &place[..]].concat()).expect("helm is there");
    }
}

/// Whether the check of a release asks the server, which has pods of its own.
fn is_asked(values: &str) -> bool {
    values.contains("topology=separate")
}

/// Creates the pod as a dry run, in its namespace with the strictest level of Pod Security.
async fn is_admitted(admin: &Api, pod: &Value, namespace: &str) {
    let restricted =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let path = format!("/api/v1/namespaces/{namespace}");
    admin.change(&path, &restricted).await;
    let pods = format!("{path}/pods?dryRun=All&fieldValidation=Strict");
    let created = admin.create(&pods, pod).await;
    created.unwrap_or_else(|refusal| panic!("{refusal:?}: {pod:#}"));
}

//! Each server of the manifests has a policy, which admits only its own agents; and that policy as a server applies it.

use std::{collections::BTreeSet, fs};

use serde_json::Value;
use server_access::{Identity, NamedCluster, Permissions, Policy, method::METHODS};
use tests::binaries;

use crate::{
    extended::templated,
    manifests::{FOLDERS, STATIC, TOKENS, containers, server_of, static_pod, text_of},
    rendered::{CUSTOM_SYSTEM, Rendered, SYSTEM},
};

const ANY: NamedCluster<'_> = NamedCluster {
    uid: "6c1c1b5e-0d5f-4b52-9a39-6d9c0f6f2a11",
    name: "",
    shard: "7",
};

const STATIC_POD: &str = "static pod";

/// The template of a pod with a server, and its volumes.
struct Served<'a> {
    template: &'a Value,
    rendered: &'a Rendered,
}

impl Served<'_> {
    /// The file of `--policy`, through the mount and the volume.
    fn policy(&self) -> Option<&str> {
        let server = server_of(self.template)?;
        let mut args = server["args"].as_array()?.iter().filter_map(Value::as_str);
        let file = args.find_map(|it| it.strip_prefix("--policy="))?;
        let (folder, file) = file.rsplit_once('/')?;
        let named = |list: &Value, key: &str, text: &str| {
            let found = list.as_array()?.iter().find(|it| it[key] == *text);
            found.cloned()
        };
        let mount = named(&server["volumeMounts"], "mountPath", folder)?;
        let volume = named(
            &self.template["spec"]["volumes"],
            "name",
            mount["name"].as_str()?,
        )?;
        if let Some(map) = volume["configMap"]["name"].as_str() {
            return self.rendered.one("ConfigMap", map)["data"][file].as_str();
        }
        let item = &volume["downwardAPI"]["items"][0];
        assert_eq!(item["path"], file);
        let field = item["fieldRef"]["fieldPath"].as_str()?;
        let annotation = field.strip_prefix("metadata.annotations['")?;
        self.template["metadata"]["annotations"][annotation.strip_suffix("']")?].as_str()
    }
}

/// All kustomizations of the checkout, as paths from `deploy/kustomize`.
fn kustomizations() -> BTreeSet<String> {
    let root = binaries::checkout().join("deploy/kustomize");
    let mut folders = vec![root.clone()];
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it is a folder").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() == "kustomization.yaml" {
                let path = folder.strip_prefix(&root).expect("it is below");
                found.insert(path.to_string_lossy().into_owned());
            }
        }
    }
    found
}

fn has_server(rendered: &Rendered) -> bool {
    let mut workloads = rendered.workloads();
    workloads.any(|it| server_of(&it["spec"]["template"]).is_some())
}

/// Fails unless each server has a policy that admits these identities as agents, and grants strangers nothing.
fn admits_only(rendered: &Rendered, agents: &[Identity], what: &str) {
    let mut servers = 0;
    for workload in rendered.workloads() {
        let template = &workload["spec"]["template"];
        let served = Served { template, rendered };
        if server_of(template).is_some() {
            servers += 1;
            let policy = served.policy();
            let policy = policy.unwrap_or_else(|| panic!("{what}: a server has no policy"));
            text_admits_only(policy, agents, what);
        }
    }
    assert_eq!(servers, 1, "{what}");
}

fn text_admits_only(policy: &str, agents: &[Identity], what: &str) {
    let policy = Policy::parse(policy).unwrap_or_else(|error| panic!("{what}: {error}"));
    for agent in agents {
        let agent = policy.permissions(agent);
        assert!(agent.may_open(ANY) && agent.may_view(ANY), "{what}");
    }
    // A static pod shares the network of its node, so that every process of the node reaches its console.
    let console = policy.permissions(&Identity::Console);
    assert_eq!(console.may_view(ANY), what != STATIC_POD, "{what}");
    assert!(!console.may_open(ANY), "{what}");
    let strangers = [
        Identity::Anonymous,
        Identity::Uid(0),
        Identity::Uid(1000),
        Identity::Dns("decree-agent".to_owned()),
        Identity::Uri("spiffe://cluster.local/ns/default/sa/decree-agent".to_owned()),
        Identity::Uri("spiffe://cluster.local/ns/decree-system/sa/default".to_owned()),
        Identity::Subject("system:serviceaccount:default:decree-agent".to_owned()),
        Identity::Subject("system:serviceaccount:decree-system:decree-server".to_owned()),
    ];
    let may =
        |permissions: &Permissions| METHODS.iter().any(|it| permissions.may_call(Some(it.need)));
    for stranger in strangers {
        let permissions = policy.permissions(&stranger);
        assert!(!may(&permissions), "{what}: {stranger}");
    }
}

/// The identity in the certificate that cert-manager issues for agents.
fn certified() -> Option<Identity> {
    let issued = Rendered::of("cert-manager")?;
    let uri = &issued.one("Certificate", "decree-agent")["spec"]["uris"][0];
    Some(Identity::Uri(text_of(uri).to_owned()))
}

fn user_of(pod: &Value) -> Identity {
    let user = pod["securityContext"]["runAsUser"].as_u64();
    let user = user.and_then(|it| u32::try_from(it).ok());
    Identity::Uid(user.expect("a pod has a user"))
}

/// The identities of the agents of a kustomization.
fn agents_of(folder: &str, rendered: &Rendered) -> Option<Vec<Identity>> {
    let pod = &rendered.workload("decree-agent")["spec"]["template"]["spec"];
    if containers(pod).count() == 2 {
        return Some(vec![user_of(pod)]);
    }
    if folder == TOKENS {
        let account = text_of(&pod["serviceAccountName"]);
        let subject = format!("system:serviceaccount:{SYSTEM}:{account}");
        return Some(vec![Identity::Subject(subject)]);
    }
    let of_pki_dev = Identity::Uri("spiffe://decree.local/agent".to_owned());
    Some(vec![certified()?, of_pki_dev])
}

#[test]
fn each_server_of_the_kustomizations_has_a_policy_for_its_own_agents() {
    let mut with_servers = BTreeSet::new();
    for folder in kustomizations() {
        let rendered = tests::or_skip!(Rendered::of(&folder));
        if has_server(&rendered) {
            let agents = tests::or_skip!(agents_of(&folder, &rendered));
            admits_only(&rendered, &agents, &folder);
            with_servers.insert(folder);
        }
    }
    let listed: BTreeSet<_> = FOLDERS.into_iter().map(str::to_owned).collect();
    assert_eq!(with_servers, listed, "other tests go by the list");
}

#[test]
fn server_of_the_static_pod_has_a_policy_for_its_own_agent() {
    let rendered = tests::or_skip!(Rendered::of(STATIC));
    assert!(!has_server(&rendered), "it comes from the file");
    assert_eq!(rendered.all("ConfigMap").count(), 0, "it can mount none");
    let served = Served {
        template: &static_pod(),
        rendered: &rendered,
    };
    let policy = served.policy().expect("it has one");
    text_admits_only(policy, &[Identity::Uid(65532)], STATIC_POD);
    let viewer = rendered.all("ServiceAccount").next();
    let viewer = &viewer.expect("there is one")["metadata"];
    let [namespace, name] = ["namespace", "name"].map(|key| text_of(&viewer[key]));
    let viewer = Identity::Subject(format!("system:serviceaccount:{namespace}:{name}"));
    let policy = Policy::parse(policy).expect("it is valid");
    let viewer = policy.permissions(&viewer);
    assert!(viewer.may_view(ANY) && !viewer.may_open(ANY));
}

#[test]
fn values_of_the_chart_add_grants_or_replace_the_policy() {
    const CHART: &str = "deploy/helm/decree";
    let own = r#"policy.grants=[{"identities":["dns:dashboard.example.org"],"role":"viewer","names":["shop-*","a<b>"]}]"#;
    for topology in ["topology=all-in-one", "topology=separate"] {
        let flags = ["--set", topology, "--set-json", own];
        let rendered = tests::or_skip!(templated(CHART, &flags));
        let policy = &rendered.one("ConfigMap", "decree-policy")["data"]["policy.toml"];
        let policy = Policy::parse(text_of(policy)).expect("it is valid");
        let agent = match topology {
            "topology=separate" => Identity::Uri(format!(
                "spiffe://cluster.local/ns/{SYSTEM}/sa/decree-agent"
            )),
            _ => Identity::Uid(65532),
        };
        assert!(policy.permissions(&agent).may_open(ANY));
        assert!(policy.permissions(&Identity::Console).may_view(ANY));
        let viewer = policy.permissions(&Identity::Dns("dashboard.example.org".to_owned()));
        let sees = |name| viewer.may_view(NamedCluster { name, ..ANY });
        assert!(sees("shop-1") && sees("a<b>") && !sees("other"));
    }
    let toml = "policy.toml=[[grant]]\nidentities=[\"uid:7\"]\nrole=\"admin\"\n";
    let rendered = templated(CHART, &["--set", &toml.replace(',', "\\,")]).expect("helm is there");
    let policy = &rendered.one("ConfigMap", "decree-policy")["data"]["policy.toml"];
    let policy = Policy::parse(text_of(policy)).expect("it is valid");
    assert!(!policy.permissions(&Identity::Uid(65532)).may_open(ANY));
    assert!(policy.permissions(&Identity::Uid(7)).may_view(ANY));
    let without = templated(CHART, &["--set", "policy.console=false"]).expect("helm is there");
    let policy = &without.one("ConfigMap", "decree-policy")["data"]["policy.toml"];
    let policy = Policy::parse(text_of(policy)).expect("it is valid");
    assert!(!policy.permissions(&Identity::Console).may_view(ANY));
}

#[test]
fn policy_of_another_namespace_names_the_agents_there() {
    let values = "topology=separate,tokens.enabled=true";
    let args = ["--set", values, "--namespace", CUSTOM_SYSTEM];
    let rendered = tests::or_skip!(templated("deploy/helm/decree", &args));
    let policy = &rendered.one("ConfigMap", "decree-policy")["data"]["policy.toml"];
    let policy = Policy::parse(text_of(policy)).expect("it is valid");
    let of = |namespace| {
        let subject = format!("system:serviceaccount:{namespace}:decree-agent");
        policy.permissions(&Identity::Subject(subject))
    };
    assert!(of(CUSTOM_SYSTEM).may_open(ANY) && !of(SYSTEM).may_open(ANY));
}

/// The identities in the certificates for a trial, as the documents describe them.
#[test]
fn certificates_for_a_trial_do_what_the_documents_say_under_the_shipped_policy() {
    let folder = "overlays/high-availability";
    let rendered = tests::or_skip!(Rendered::of(folder));
    let template = &rendered.workload("decree-server")["spec"]["template"];
    let served = Served {
        template,
        rendered: &rendered,
    };
    let policy = Policy::parse(served.policy().expect("it has one")).expect("it is valid");
    let of = |role| policy.permissions(&Identity::Uri(format!("spiffe://decree.local/{role}")));
    assert!(of("agent").may_open(ANY) && of("agent").may_view(ANY));
    assert!(of("admin").may_view(ANY));
    assert!(!of("viewer").may_view(ANY) && !of("viewer").may_open(ANY));
}

//! ReplicaSets of the group decree.dev: the agent reconciles only these.

use serde_json::{Value, json};
use tests::real::{
    Agent, Api, ApiServer, ControllerManager, DecisionServer, Namespace, Patch, Refusal,
};

use crate::{
    objects,
    rendered::{self, CUSTOM_SYSTEM, Rendered},
};

const GROUP: &str = "/apis/decree.dev/v1";
const FLAGS: [&str; 4] = [
    "--resource",
    "replicasets.v1.decree.dev",
    "--lease-namespace",
    CUSTOM_SYSTEM,
];

/// A namespace with custom ReplicaSets, and an agent with the shipped settings.
struct Stage {
    namespace: Namespace,
    _agent: Agent,
    _server: DecisionServer,
    cluster: ApiServer,
}

impl Stage {
    async fn set() -> Option<Self> {
        let rendered = Rendered::of("overlays/custom-resource")?;
        let checked = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
        let cluster = ApiServer::start_with(&[checked]).await?;
        let admin = cluster.admin().await;
        rendered.apply(&admin).await;
        let namespace = Namespace::create(admin, "custom").await;
        let server = DecisionServer::start();
        let account = cluster.service_account(CUSTOM_SYSTEM, "decree-agent").await;
        let user = Api::of(&account).await;
        let all = format!("{GROUP}/replicasets");
        user.wait_for("permitted", &all, |_| Some(())).await;
        let agent = Agent::start(&server, &account, &FLAGS);
        Some(Self {
            namespace,
            _agent: agent,
            _server: server,
            cluster,
        })
    }

    fn path(&self, name: &str) -> String {
        self.namespace.path(GROUP, "replicasets", name)
    }

    /// Waits until the status of `web` reports `replicas` replicas, and returns the ReplicaSet.
    async fn settles(&self, replicas: u32) -> Value {
        let api = self.namespace.api();
        api.wait_for("settled", &self.path("web"), |set| {
            let status = &set["status"];
            let observed = status["observedGeneration"] == set["metadata"]["generation"];
            (observed && status["replicas"] == replicas).then(|| set.clone())
        })
        .await
    }
}

fn custom(name: &str, replicas: u32) -> Value {
    let mut set = objects::replica_set(name, replicas);
    set["apiVersion"] = "decree.dev/v1".into();
    set
}

#[tokio::test]
async fn custom_replica_set_is_filled_scaled_and_collected_beside_a_built_in_one_of_its_name() {
    let stage = tests::or_skip!(Stage::set().await);
    let (namespace, api) = (&stage.namespace, stage.namespace.api());
    api.make(&namespace.pod(""), &objects::pod("orphan")).await;
    let mut built_in = objects::replica_set("web", 2);
    let other = json!({"app": "other"});
    built_in["spec"]["selector"]["matchLabels"] = other.clone();
    built_in["spec"]["template"]["metadata"]["labels"] = other;
    let built_in = api.make(&namespace.replica_set(""), &built_in).await;
    api.make(&stage.path(""), &custom("web", 3)).await;
    let set = stage.settles(3).await;
    let pods = namespace.pods().await.expect("they can be listed");
    let owner = json!([{
        "apiVersion": "decree.dev/v1", "kind": "ReplicaSet", "name": "web",
        "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().any(|pod| pod["metadata"]["name"] == "orphan"));
    for pod in &pods {
        assert_eq!(pod["metadata"]["ownerReferences"], owner);
    }

    let scale = format!("{}/scale", stage.path("web"));
    let seen = api.get(&scale).await.expect("it has the subresource");
    assert_eq!(
        seen["status"],
        json!({"replicas": 3, "selector": "app=web"})
    );
    let patch = json!({"spec": {"replicas": 1}});
    api.change(&scale, &patch).await;
    stage.settles(1).await;
    assert_eq!(namespace.pods().await.expect("they can be listed").len(), 1);

    let events = namespace.path("/api/v1", "events", "");
    api.wait_for("told of", &events, |list| {
        let mut events = list["items"].as_array()?.iter();
        let told = events.any(|event| {
            let about = &event["involvedObject"];
            event["reason"] == "SuccessfulDelete" && about["apiVersion"] == "decree.dev/v1"
        });
        told.then_some(())
    })
    .await;

    let collector = ["--controllers=garbage-collector-controller"];
    let _collector = ControllerManager::start(&stage.cluster, &collector);
    let foreground = json!({"propagationPolicy": "Foreground"});
    api.remove(&stage.path("web"), &foreground).await;
    api.wait_for("without pods", &namespace.pod(""), |list| {
        list["items"].as_array()?.is_empty().then_some(())
    })
    .await;
    let later = api.get(&namespace.replica_set("web")).await;
    assert_eq!(later.expect("it is there"), built_in);
}

#[tokio::test]
async fn schema_refuses_what_the_built_in_resource_refuses() {
    let (Some(cluster), Some(rendered)) = (ApiServer::shared().await, Rendered::of("crd")) else {
        return;
    };
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    let namespace = Namespace::create(admin, "custom-schema").await;
    let path = namespace.path(GROUP, "replicasets", "");
    for (pointer, value) in invalid_fields() {
        for (path, mut set) in [
            (&path, custom("refused", 1)),
            (
                &namespace.replica_set(""),
                objects::replica_set("refused", 1),
            ),
        ] {
            let (parent, field) = pointer.rsplit_once('/').expect("it is a pointer");
            let parent = set.pointer_mut(parent).expect("it is there");
            parent[field] = value.clone();
            let refusal = namespace.create(path, &set).await;
            let code = refusal.map_err(|refusal: Refusal| refusal.code);
            assert_eq!(code, Err(422), "{pointer} {value} at {path}");
        }
    }
}

/// Fields of a ReplicaSet with invalid values.
fn invalid_fields() -> [(&'static str, Value); 10] {
    let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
    [
        ("/spec/replicas", json!(-1)),
        ("/spec/minReadySeconds", json!(-1)),
        ("/spec/selector", json!({})),
        ("/spec/selector", json!({"matchLabels": {"app": "other"}})),
        ("/spec/selector", expression("In", json!(["other"]))),
        ("/spec/selector", expression("In", json!([]))),
        ("/spec/selector", expression("NotIn", json!(["web"]))),
        ("/spec/selector", expression("Exists", json!(["web"]))),
        ("/spec/template/spec/restartPolicy", json!("Never")),
        ("/spec/template/spec/activeDeadlineSeconds", json!(9)),
    ]
}

#[tokio::test]
async fn custom_resource_has_the_defaults_and_columns_of_the_built_in_one() {
    let (Some(cluster), Some(rendered)) = (ApiServer::shared().await, Rendered::of("crd")) else {
        return;
    };
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    let namespace = Namespace::create(admin, "custom-defaults").await;
    let (api, path) = (namespace.api(), namespace.path(GROUP, "replicasets", ""));
    let mut set = custom("web", 1);
    set["spec"]
        .as_object_mut()
        .expect("it is an object")
        .remove("replicas");
    set["spec"]["template"]["spec"]["fieldOfTomorrow"] = json!({"deep": [1, "two"]});
    let created = api.create(&path, &set).await.expect("it is valid");
    assert_eq!(created["spec"]["replicas"], 1);
    assert_eq!(created["spec"]["template"], set["spec"]["template"]);

    let example = include_str!("../../docs/examples/custom.yaml");
    let example = serde_saphyr::from_str(example).expect("it is YAML");
    let applied = rendered::apply(api, &example).await;
    applied.expect("the documented example is valid");

    let selector =
        json!({"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}});
    let one = format!("{path}/web");
    let refusal = api.patch(&one, Patch::Merge, &selector).await;
    let refusal = refusal.expect_err("the selector is immutable");
    assert_eq!(refusal.code, 422, "{refusal:?}");

    let table = api.table(&path).await.expect("it is served");
    let columns = table["columnDefinitions"].as_array();
    let columns = columns.expect("it has columns").iter();
    let names: Vec<_> = columns.map(|column| column["name"].clone()).collect();
    assert_eq!(names, ["Name", "Desired", "Current", "Ready", "Age"]);
    let found = api.get(GROUP).await.expect("the group is served");
    let resources = found["resources"].as_array().expect("it is a list").iter();
    let short: Vec<_> = resources.map(|it| it["shortNames"].clone()).collect();
    assert!(short.contains(&json!(["drs"])), "{short:?}");
}

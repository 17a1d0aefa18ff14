//! The embedded cluster as a task: its calls, its time and its end.

use agent_core::{
    api::{CreatePod, Template},
    nodes::NodeEvent,
    watch::WatchEvent,
};
use agent_fake::{ClusterConfig, Fault, Kubelet};
use decree_api::v1;
use serde_json::json;

use super::*;

/// Starts a cluster with default/web in it, which owns the created pods: the garbage collector would remove others.
fn start(config: ClusterConfig) -> FakeCluster {
    let cluster = FakeCluster::start(config, Vec::new()).expect("an empty cluster starts");
    let labels = json!({"app": "web"});
    let containers = json!([{"name": "c", "image": "i"}]);
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"namespace": "default", "name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    });
    let created = cluster.with(|model| model.create(set));
    created.expect("it is a ReplicaSet");
    cluster
}

async fn list(cluster: &FakeCluster) -> List {
    let page = cluster.list(Kind::Pod).next().await;
    page.expect("there is a page").expect("it lists")
}

fn new_pod(cluster: &FakeCluster, name: &str) -> CreatePod {
    let kind = agent_fake::Kind::ReplicaSet;
    let set = cluster.with(|model| model.peek(kind, "default", "web").cloned());
    let uid = set.and_then(|set| Some(set["metadata"]["uid"].as_str()?.to_owned()));
    let template = br#"{"spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    CreatePod {
        namespace: "default".into(),
        name: name.into(),
        generate_name: String::new(),
        controller: v1::OwnerReference {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: "web".into(),
            uid: uid.expect("it is there"),
            block_owner_deletion: Some(true),
        },
        template: Template::new(*template),
        responds: false,
        timeout: Duration::from_secs(20),
    }
}

async fn create(cluster: &FakeCluster, name: &str) -> v1::Pod {
    let create = new_pod(cluster, name);
    let reply = cluster.call(Request::CreatePod(create)).await;
    let Ok(Reply::Pod(pod)) = reply else {
        panic!("{reply:?}")
    };
    *pod
}

#[tokio::test]
async fn pods_answer_the_number_in_their_annotation() {
    let cluster = start(ClusterConfig::default());
    let pod = |name: &str, busy: &str| {
        let metadata = json!({"namespace": "default", "name": name, "annotations": {BUSY: busy}});
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    };
    let ask = async |name: &str, busy: &str, uid: Option<&str>| {
        let created = cluster
            .with(|model| model.create(pod(name, busy)))
            .expect("it is a pod");
        let uid = uid.unwrap_or_else(|| created["metadata"]["uid"].as_str().expect("a uid"));
        let pod = v1::ObjectRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        let source = PodSource::Metric("busy".to_owned());
        cluster.cost(pod, source).await.ok()
    };
    assert_eq!(ask("a", "-17", None).await, Some(-17));
    assert_eq!(ask("b", "many", None).await, None);
    assert_eq!(ask("c", "5", Some("of another pod")).await, None);
}

async fn watch_pods(cluster: &FakeCluster) -> FakeEvents {
    let list = list(cluster).await;
    cluster
        .watch(Kind::Pod, list.resource_version)
        .await
        .expect("it watches")
}

#[tokio::test(start_paused = true)]
async fn advice_is_written_and_taken_away_on_the_version_that_was_seen() {
    let cluster = start(ClusterConfig::default());
    let mut pod = create(&cluster, "a").await;
    for (cost, expected) in [(-7, Some("-7")), (0, None)] {
        let advise = |resource_version: &str| Request::AdvisePod {
            pod: v1::ObjectRef {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: pod.uid.clone(),
            },
            resource_version: resource_version.to_owned(),
            cost,
        };
        let stale = cluster.call(advise("1")).await;
        assert_eq!(stale.err().and_then(|error| error.code), Some(409));
        let reply = cluster.call(advise(&pod.resource_version)).await;
        let Ok(Reply::Pod(advised)) = reply else {
            panic!("{reply:?}")
        };
        pod = *advised;
        let costs = [&pod.deletion_cost, &pod.advised_cost].map(Option::as_deref);
        assert_eq!(costs, [expected; 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_wait_come_together_and_a_slow_reader_loses_none() {
    let cluster = start(ClusterConfig {
        kubelet: Kubelet {
            schedule_after: Duration::MAX,
            ..Kubelet::default()
        },
        ..ClusterConfig::default()
    });
    let mut events = watch_pods(&cluster).await;
    let count = CHUNK_MAX * 20;
    for index in 0..count {
        create(&cluster, &format!("p-{index}")).await;
    }
    let mut received = 0;
    while received < count {
        let chunk = events.next().await.expect("the watch lives").len();
        assert_eq!(chunk, CHUNK_MAX);
        received += chunk;
    }
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_dropped_ends() {
    let cluster = start(ClusterConfig::default());
    let mut events = watch_pods(&cluster).await;
    cluster.with(|model| model.drop_watches(agent_fake::Kind::Pod));
    create(&cluster, "a").await;
    while events.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn watch_from_a_version_that_is_too_old_is_refused() {
    let cluster = start(ClusterConfig::default());
    let list = list(&cluster).await;
    create(&cluster, "a").await;
    cluster.with(|model| model.compact(agent_fake::Kind::Pod));
    create(&cluster, "b").await;
    let refused = cluster
        .watch(Kind::Pod, list.resource_version)
        .await
        .expect_err("too old");
    assert_eq!(refused.code, Some(410));
    let refused = cluster
        .watch(Kind::Pod, "x".into())
        .await
        .expect_err("not a version");
    assert_eq!(refused.code, Some(400));
}

#[tokio::test(start_paused = true)]
async fn quiet_watch_gets_its_bookmarks() {
    let cluster = start(ClusterConfig::default());
    let mut events = watch_pods(&cluster).await;
    let chunk = events.next().await.expect("the watch lives");
    assert!(matches!(chunk[0], WatchEvent::Bookmark(_)), "{chunk:?}");
}

#[tokio::test(start_paused = true)]
async fn cluster_ends_with_its_last_handle() {
    let cluster = start(ClusterConfig::default());
    let model = Arc::downgrade(&cluster.shared);
    drop(cluster);
    while model.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn create_that_takes_longer_than_it_may_has_no_effect() {
    let cluster = start(ClusterConfig::default());
    let slow = Fault::delay(Duration::from_secs(3)).on(agent_fake::Verb::Create);
    cluster.with(|model| model.faults_mut().add(slow));
    let begun = tokio::time::Instant::now();
    let request = Request::CreatePod(CreatePod {
        timeout: Duration::from_secs(2),
        ..new_pod(&cluster, "a")
    });
    let refused = cluster.call(request).await.expect_err("it is cut");
    assert_eq!(refused.code, Some(504));
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    let list = list(&cluster).await;
    assert_eq!(list.count(), 0);
    create(&cluster, "b").await;
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn nodes_are_sent_in_spite_of_a_refusal_and_so_are_their_changes() {
    let cluster = start(ClusterConfig::default());
    let forbidden = agent_fake::ApiError::new(403, "Forbidden", "nodes is forbidden");
    let once = Fault::refuse(forbidden).on(agent_fake::Verb::List).times(1);
    cluster.with(|model| model.faults_mut().add(once));
    let (sender, mut news) = tokio::sync::mpsc::channel(1);
    let tell = move |it| {
        let sender = sender.clone();
        async move { drop(sender.send(it).await) }
    };
    let following = cluster.clone().follow_nodes(NodeFields::default(), tell);
    let _following = AbortOnDropHandle::new(tokio::spawn(following));
    let refused = news.recv().await.expect("it follows").expect_err("once");
    assert_eq!((refused.0, refused.1.code), ("list", Some(403)));
    let cordon = json!({"spec": {"unschedulable": true}});
    for expected in [0, 1] {
        let listed = news.recv().await.expect("it follows").expect("all nodes");
        let [NodeEvent::Listed(nodes)] = &listed[..] else {
            panic!("{listed:?}")
        };
        let cordoned = nodes.iter().filter(|it| it.unschedulable).count();
        assert_eq!((nodes.len(), cordoned), (3, expected));
        assert_eq!(news.recv().await, Some(Ok(vec![])));
        let patched = |model: &mut agent_fake::Cluster| {
            model.patch(agent_fake::Kind::Node, "", "node-b", &cordon)
        };
        cluster.with(patched).expect("there is one");
    }
}

#[tokio::test(start_paused = true)]
async fn failure_of_a_node_has_its_consequences_although_nobody_calls() {
    let cluster = start(ClusterConfig::default());
    create(&cluster, "a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let failed = cluster.with(|model| model.fail_node("node-a"));
    failed.expect("there is one");
    let lost = timeout(Duration::from_secs(60), cluster.changed()).await;
    assert!(lost.is_ok(), "the pod is lost after 40 seconds");
}

//! The embedded cluster as a task: its calls, its time and its end.

use agent_core::api::Object;
use agent_fake::{Config, Fault, Kubelet};
use serde_json::json;

use super::*;

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn start(config: Config) -> FakeCluster {
    FakeCluster::start(config, Vec::new()).expect("an empty cluster starts")
}

async fn create(cluster: &FakeCluster, name: &str) -> agent_fake::Object {
    let timeout = Duration::from_secs(20);
    let request = Request::CreatePod {
        pod: pod(name),
        timeout,
    };
    let reply = cluster.call(request).await;
    let Ok(Reply::Object(Object::Written(pod))) = reply else {
        panic!("{reply:?}")
    };
    pod
}

async fn watch_pods(cluster: &FakeCluster) -> Events {
    let list = cluster.list(Kind::Pod).await.expect("it lists");
    cluster
        .watch(Kind::Pod, list.resource_version)
        .await
        .expect("it watches")
}

#[tokio::test(start_paused = true)]
async fn time_passes_by_itself_and_pods_become_ready() {
    let cluster = start(Config::default());
    let mut events = watch_pods(&cluster).await;
    create(&cluster, "a").await;
    let mut seen = Vec::new();
    while seen.last() != Some(&json!("True")) {
        for event in events.recv().await.expect("the watch lives") {
            let ready = event
                .object
                .written()
                .and_then(|pod| pod.pointer("/status/conditions"))
                .and_then(Value::as_array);
            let ready = ready.into_iter().flatten().find(|it| it["type"] == "Ready");
            seen.extend(ready.map(|it| it["status"].clone()));
        }
    }
    let elapsed = cluster
        .with(|model| model.now())
        .duration_since(Config::default().start);
    let Kubelet {
        schedule_after,
        start_after,
        ready_after,
        ..
    } = Kubelet::default();
    assert!(
        elapsed.unsigned_abs() >= schedule_after + start_after + ready_after,
        "{elapsed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn changes_that_wait_come_in_one_chunk() {
    let cluster = start(Config {
        kubelet: Kubelet::idle(),
        ..Config::default()
    });
    let mut events = watch_pods(&cluster).await;
    for name in ["a", "b", "c"] {
        create(&cluster, name).await;
    }
    assert_eq!(events.recv().await.expect("the watch lives").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_loses_nothing() {
    let cluster = start(Config {
        kubelet: Kubelet::idle(),
        ..Config::default()
    });
    let mut events = watch_pods(&cluster).await;
    let count = CHUNK_MAX * (CHUNKS_MAX + 4);
    for index in 0..count {
        create(&cluster, &format!("p-{index}")).await;
    }
    let mut received = 0;
    while received < count {
        received += events.recv().await.expect("the watch lives").len();
    }
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_dropped_ends() {
    let cluster = start(Config::default());
    let mut events = watch_pods(&cluster).await;
    cluster.with(|model| model.faults_mut().drop_watches(agent_fake::Kind::Pod));
    create(&cluster, "a").await;
    while events.recv().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn watch_from_a_version_that_is_too_old_is_refused() {
    let cluster = start(Config::default());
    let list = cluster.list(Kind::Pod).await.expect("it lists");
    create(&cluster, "a").await;
    cluster.with(|model| model.faults_mut().compact(agent_fake::Kind::Pod));
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
    let cluster = start(Config::default());
    let mut events = watch_pods(&cluster).await;
    let chunk = events.recv().await.expect("the watch lives");
    assert_eq!(chunk[0].verb, WatchVerb::Bookmark);
}

#[tokio::test(start_paused = true)]
async fn reply_that_is_late_is_late_for_its_caller_alone() {
    let cluster = start(Config {
        kubelet: Kubelet::idle(),
        ..Config::default()
    });
    let late = Fault::delay(Duration::from_secs(9)).on(agent_fake::Verb::Create);
    cluster.with(|model| model.faults_mut().add(late));
    let before = tokio::time::Instant::now();
    create(&cluster, "a").await;
    assert_eq!(before.elapsed(), Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn deletion_says_whether_the_pod_is_gone() {
    let cluster = start(Config {
        kubelet: Kubelet::idle(),
        ..Config::default()
    });
    let uid = |pod: &agent_fake::Object| {
        pod["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let delete = |name: &str, uid: String| Request::DeletePod {
        namespace: "default".into(),
        name: name.into(),
        uid,
        resource_version: None,
    };
    let pod = create(&cluster, "a").await;
    let refused = cluster
        .call(delete("a", "another".into()))
        .await
        .expect_err("another uid");
    assert_eq!(refused.code, Some(409));
    let reply = cluster.call(delete("a", uid(&pod))).await;
    assert!(
        matches!(reply, Ok(Reply::Gone(_))),
        "an unassigned pod goes at once: {reply:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn cluster_ends_with_its_last_handle() {
    let cluster = start(Config::default());
    let model = Arc::downgrade(&cluster.shared);
    drop(cluster);
    while model.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn create_that_takes_longer_than_it_may_has_no_effect() {
    let cluster = start(Config::default());
    let slow = Fault::delay(Duration::from_secs(3)).on(agent_fake::Verb::Create);
    cluster.with(|model| model.faults_mut().add(slow));
    let begun = tokio::time::Instant::now();
    let request = Request::CreatePod {
        pod: pod("a"),
        timeout: Duration::from_secs(2),
    };
    let refused = cluster.call(request).await.expect_err("it is cut");
    assert_eq!(refused.code, Some(504));
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    let list = cluster.list(Kind::Pod).await.expect("it lists");
    assert_eq!(list.items.len(), 0);
    create(&cluster, "b").await;
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
}

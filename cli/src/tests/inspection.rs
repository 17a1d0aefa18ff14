//! The commands that ask a running server.

use std::net::TcpListener;

use agent_fake::{ApiError, Fault, Kind, Verb};
use serde_json::Value;

use super::{
    decree,
    system::{System, assert_says},
};
use crate::Exit;

#[test]
fn running_server_tells_what_it_holds_and_why() {
    let system = System::start(&["demo"]);
    let sets = system.decree(&["get", "rs"]);
    assert_says(
        "NAMESPACE   NAME         DESIRED   CURRENT   READY   AVAILABLE   STATE     CAUSE\n\
         default     web-5f6a8b   3         3         3       3           In sync   -\n\
         default     web-7d4b9c   20        20        20      20          In sync   -\n",
        &sets.out,
    );
    let sessions = system.decree(&["get", "sessions"]);
    assert_says(
        "CLUSTER   SHARD   MODE      SYNCED   REPLICASETS   PODS   AGE\n\
         demo      <all>   Enforce   True     2             23     …s\n",
        &sessions.out,
    );
    let explained = system.decree(&["explain", "default/web-5f6a8b"]);
    assert_eq!(explained.exit, Exit::Done, "{}", explained.err);
    assert!(
        explained
            .out
            .contains("Replicas:    3 desired, 3 current, 3 ready, 3 available")
    );
    assert!(
        explained.out.contains("TOO_FEW_REPLICAS"),
        "{}",
        explained.out
    );
}

#[test]
fn lists_of_a_namespace_without_objects_are_empty() {
    let system = System::start(&["demo"]);
    let none = system.decree(&["get", "rs", "-n", "elsewhere"]);
    assert_eq!((none.exit, none.out.as_str()), (Exit::Done, ""));
    assert_eq!(none.err, "No resources found in elsewhere namespace.\n");
    let json = system.decree(&["get", "rs", "-n", "elsewhere", "-o", "name"]);
    assert_eq!(
        (json.exit, json.out.as_str(), json.err.as_str()),
        (Exit::Done, "", "")
    );
}

#[test]
fn json_is_the_contract_with_every_key() {
    let system = System::start(&["demo"]);
    let json = |arguments: &[&str]| -> Value {
        let ended = system.decree(&[arguments, &["-o", "json"]].concat());
        assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
        serde_json::from_str(&ended.out).expect("JSON")
    };
    let sets = json(&["get", "replicasets"]);
    assert_eq!(sets["replicaSets"][0]["state"], "REPLICA_SET_STATE_IN_SYNC");
    assert_eq!(sets["replicaSets"][0]["terminating"], 0);
    let sessions = json(&["get", "sessions", "--cluster", "demo"]);
    assert_eq!(sessions["sessions"][0]["pods"], "23");
    let explained = json(&["explain", "default/web-5f6a8b"]);
    assert_eq!(explained["summary"]["replicaSet"]["name"], "web-5f6a8b");
}

#[test]
fn simulation_names_its_victims_and_changes_nothing() {
    let system = System::start(&["demo"]);
    let simulate = [
        "simulate",
        "default/web-7d4b9c",
        "--replicas",
        "18",
        "-o",
        "json",
    ];
    let simulated = system.decree(&simulate);
    let decision: Value = serde_json::from_str(&simulated.out).expect("JSON");
    assert_eq!(decision["deletes"].as_array().map(Vec::len), Some(2));
    assert!(decision["deletes"][0]["reason"]["rule"].is_string());
    assert_eq!(decision["creates"]["count"], 0);
    let up = system.decree(&["simulate", "default/web-5f6a8b", "--replicas", "4"]);
    assert!(
        up.out.contains("create") && up.out.contains("TOO_FEW_REPLICAS"),
        "{}",
        up.out
    );
    let sets = system.decree(&["get", "rs"]);
    assert!(
        sets.out.contains("web-7d4b9c   20        20 "),
        "{}",
        sets.out
    );
    assert_eq!(
        system
            .decree(&["simulate", "default/web-5f6a8b", "--replicas", "-1"])
            .exit,
        Exit::Usage
    );
}

#[test]
fn watch_prints_decisions_as_they_are_made() {
    let system = System::start(&["demo"]);
    for (output, replicas) in [("table", 4), ("json", 5)] {
        let watch = ["watch", "default/web-5f6a8b", "--count", "1", "-o", output];
        let watched = system.decree_scaling("web-5f6a8b", replicas, &watch);
        assert_eq!((watched.exit, watched.err.as_str()), (Exit::Done, ""));
        let last = watched.out.lines().last().unwrap_or_default();
        assert!(
            last.contains("TOO_FEW_REPLICAS") && last.contains("create"),
            "{}",
            watched.out
        );
        system.settle();
    }
}

#[test]
fn watch_tells_what_the_cluster_refuses() {
    let system = System::start(&["demo"]);
    system.clusters[0].with(|it| {
        let full = Fault::refuse(ApiError::new(403, "Forbidden", "exceeded quota: pods"));
        it.faults_mut().add(full.on(Verb::Create).of(Kind::Pod));
    });
    // The decision to create, and the decision to report the refusal in the status.
    let watch = ["watch", "default/web-5f6a8b", "--count", "2"];
    let watched = system.decree_scaling("web-5f6a8b", 4, &watch);
    let refused = watched.out.lines().find(|line| line.contains(" refused "));
    let refused = refused.unwrap_or_else(|| panic!("{}", watched.out));
    assert!(
        refused.contains("Quota exceeded in default: pods; QUOTA")
            && refused.contains("exceeded quota: pods"),
        "{refused}"
    );
}

#[test]
fn watch_of_a_server_that_goes_ends_as_unreachable() {
    let system = System::start(&["demo"]);
    let watched = system.decree_stopping(&["watch"]);
    assert_eq!(watched.exit, Exit::Unreachable, "{}", watched.err);
}

#[test]
fn unknown_replica_set_is_an_answer() {
    let system = System::start(&["demo"]);
    for command in ["explain", "simulate"] {
        let ended = system.decree(&[command, "default/nowhere"]);
        assert_eq!((ended.exit, ended.out.as_str()), (Exit::No, ""));
        assert!(ended.err.contains("default/nowhere"), "{}", ended.err);
        assert!(ended.err.contains("hint: "), "{}", ended.err);
    }
    let some = system.decree(&["get", "rs", "web-5f6a8b", "nowhere", "--no-headers"]);
    assert_eq!(some.exit, Exit::No);
    assert!(
        some.out.starts_with("default   web-5f6a8b   3 "),
        "{}",
        some.out
    );
    assert!(
        some.err
            .starts_with("error: ReplicaSet default/nowhere not found\n"),
        "{}",
        some.err
    );
}

#[test]
fn two_clusters_are_told_apart() {
    let system = System::start(&["east", "west"]);
    let refused = system.decree(&["explain", "default/web-5f6a8b"]);
    assert_eq!(refused.exit, Exit::Refused);
    assert!(refused.err.contains("CLUSTER_REQUIRED") && refused.err.contains("--cluster"));
    let named = system.decree(&["explain", "default/web-5f6a8b", "--cluster", "west"]);
    assert!(
        named.out.contains("Cluster:     west"),
        "{}{}",
        named.out,
        named.err
    );
    let sets = system.decree(&["get", "rs"]);
    assert!(sets.out.starts_with("CLUSTER   NAMESPACE"), "{}", sets.out);
    assert_eq!(sets.out.lines().count(), 5);
}

#[test]
fn server_that_is_not_there_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|it| it.local_addr())
        .expect("a port");
    let url = format!("http://{port}");
    for arguments in [
        &["get", "rs"][..],
        &["explain", "a/b"],
        &["simulate", "a/b"],
        &["watch"],
    ] {
        let ended = decree(&[arguments, &["--server", &url]].concat());
        assert_eq!((ended.exit, ended.out.as_str()), (Exit::Unreachable, ""));
        assert!(
            ended.err.starts_with(&format!("error: {url}: ")),
            "{}",
            ended.err
        );
        assert_eq!(ended.err.lines().count(), 2, "{}", ended.err);
    }
}

#[test]
fn address_that_is_no_url_is_a_usage_error() {
    for bad in [
        "127.0.0.1:50051",
        "https://127.0.0.1:50051",
        "http://",
        "http://a b",
        "",
    ] {
        let ended = decree(&["get", "rs", "--server", bad]);
        assert_eq!(ended.exit, Exit::Usage, "{bad}: {}", ended.err);
    }
}

#[test]
fn diff_says_what_to_do_where_nobody_watches() {
    let system = System::start(&["demo"]);
    let ended = system.decree(&["diff"]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
    assert!(
        ended.err.contains("decree up --cluster kubernetes"),
        "{}",
        ended.err
    );
}

#[test]
fn nothing_that_is_connected_is_said_as_such() {
    let system = System::start(&[]);
    for command in [
        &["get", "rs"][..],
        &["get", "sessions"],
        &["explain", "web"],
        &["simulate", "web"],
    ] {
        let ended = system.decree(command);
        assert_eq!(
            (ended.exit, ended.out.as_str()),
            (Exit::No, ""),
            "{command:?}"
        );
        let said = format!(
            "error: no agent is connected to {}, so the server knows nothing\nhint: start one",
            system.url
        );
        assert!(ended.err.starts_with(&said), "{command:?}: {}", ended.err);
        let named = system.decree(&[command, &["--cluster", "west"]].concat());
        assert_eq!(
            (named.exit, named.out.as_str()),
            (Exit::No, ""),
            "{command:?}"
        );
        assert!(
            named
                .err
                .contains("no agent of a cluster \"west\" is connected to "),
            "{command:?}: {}",
            named.err
        );
    }
    let watched = system.decree(&["watch", "--cluster", "west"]);
    assert_eq!((watched.exit, watched.out.as_str()), (Exit::No, ""));
    let waiting = system.decree(&["watch", "--count", "0"]);
    assert_eq!(waiting.exit, Exit::Done);
    assert!(
        waiting.err.starts_with("notice: no agent is connected to "),
        "{}",
        waiting.err
    );
}

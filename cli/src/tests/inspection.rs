//! The commands that ask a running server.

use std::{
    io::{self, Write},
    net::TcpListener,
};

use super::{check, decree_into, system::System, victims};
use crate::Exit;

/// What a server says of docs/examples/web.yaml.
const HELD: &str = "
[0] get rs
NAMESPACE   NAME         DESIRED   CURRENT   READY   AVAILABLE   STATE     CAUSE
default     web-5f6a8b   3         3         3       3           In sync   -
default     web-7d4b9c   20        20        20      20          In sync   -
[0] get sessions
CLUSTER   SHARD   MODE      SYNCED   REPLICASETS   PODS   AGE
demo      <all>   Enforce   True     2             23     …s
[0] get rs web-5f6a8b -o wide
CLUSTER   NAMESPACE   NAME         DESIRED   CURRENT   READY   AVAILABLE   STATE     TERMINATING   UNCONVERGED   LABELS…   CAUSE   NOT-READY   MESSAGE
demo      default     web-5f6a8b   3         3         3       3           In sync   0             -             …app=web…   -
[0] explain default/web-5f6a8b
…Replicas:    3 desired, 3 current, 3 ready, 3 available…TOO_FEW_REPLICAS…
[0] get replicasets -o json
…\"state\":\"REPLICA_SET_STATE_IN_SYNC\"…
[0] get replicasets -o json
…\"terminating\":0…
[0] get sessions --cluster demo -o json
…\"pods\":\"23\"…
[0] explain default/web-5f6a8b -o json
…\"name\":\"web-5f6a8b\"…
[0] get rs web-5f6a8b -o yaml
---
replicaSets:
… state: REPLICA_SET_STATE_IN_SYNC
…
[0] get rs -A -o name
replicaset.apps/web-5f6a8b
replicaset.apps/web-7d4b9c
[0] get rs/web-7d4b9c rs/web-5f6a8b -o name
replicaset.apps/web-5f6a8b
replicaset.apps/web-7d4b9c
[0] explain -n default web-5f6a8b rs/web-7d4b9c
…

Name:        default/web-7d4b9c
…
[0] get rs -n elsewhere
No resources found in elsewhere namespace.
[0] get rs -n elsewhere -o name
[2] get pods
error: …kubectl get pods
[2] get sessions web
[2] get sessions -n shop
[2] get sessions -o name
[2] get rs -A web
[0] simulate web-5f6a8b --replicas 4
…create …TOO_FEW_REPLICAS…
[2] simulate web-5f6a8b --replicas -1
[2] simulate
error: …--drain NODE…
[1] explain shop/web-5f6a8b
error: ReplicaSet shop/web-5f6a8b not found
hint: it exists in namespace default
[1] simulate web-5f6a8
error: ReplicaSet default/web-5f6a8 not found
hint: did you mean default/web-5f6a8b?
[1] get rs web-5f6a8b nowhere
NAMESPACE …
default     web-5f6a8b   3 …error: ReplicaSet default/nowhere not found
…
[1] get rs nope web-5f6a8b none
…web-5f6a8b…error: ReplicaSets default/nope, default/none not found
…
[1] get rs -w nope web-5f6a8b none
…web-5f6a8b…error: ReplicaSets default/nope, default/none not found
…
[1] explain nope web-5f6a8b none
…web-5f6a8b…error: ReplicaSets default/nope, default/none not found
…
[1] simulate nope web-5f6a8b none
…web-5f6a8b…error: ReplicaSets default/nope, default/none not found
…
[1] watch nope web-5f6a8b none
error: ReplicaSets default/nope, default/none not found
…
[1] simulate deployment/a web-5f6a8b nope deployment/b
…web-5f6a8b…error: ReplicaSet default/nope not found; no ReplicaSet of Deployment default/a found; no ReplicaSet of Deployment default/b found
hint: list…
[1] get rs pod/a deployment/b
error: no ReplicaSet of pod default/a found; no ReplicaSet of Deployment default/b found
hint: list…
[1] get rs -w web-5f6a8b deployment/b
…web-5f6a8b…error: no ReplicaSet of Deployment default/b found
…
[1] explain deployment/a web-5f6a8b deployment/b
…web-5f6a8b…error: no ReplicaSet of Deployment default/a found; no ReplicaSet of Deployment default/b found
…
[1] watch deployment/a nope web-5f6a8b
error: ReplicaSet default/nope not found; no ReplicaSet of Deployment default/a found
…
[1] watch nope/web-5f6a8b
error: ReplicaSet nope/web-5f6a8b not found
hint: it exists in namespace default
[1] diff nope web-5f6a8b
error: ReplicaSet default/nope not found
…
[0] watch -n nope --count 0
…notice: No resources found in nope namespace. Waiting for decisions.
[2] diff
error: …decree up --cluster kubernetes";

#[test]
fn running_server_tells_what_it_holds_and_why() {
    let system = System::start(&["demo"]);
    system.check(HELD);
    for (words, sets, deletes) in [
        ("simulate web-7d4b9c --replicas 18 -o json", 1, 2),
        ("simulate web-5f6a8b web-7d4b9c --replicas 2 -o json", 2, 19),
    ] {
        let victims = victims(&system.decree(&words.split(' ').collect::<Vec<_>>()).out);
        let count = (victims.lines().count(), victims.split_whitespace().count());
        assert_eq!(count, (sets, deletes), "{words}: {victims}");
    }
}

#[test]
fn watch_prints_decisions_as_they_are_made() {
    let system = System::start(&["demo"]);
    for (output, replicas, action) in [("table", 4, "create"), ("json", 5, "ACTION_CREATE")] {
        let watch = ["watch", "default/web-5f6a8b", "--count", "1", "-o", output];
        let watched = system.decree_scaling("web-5f6a8b", replicas, &watch);
        assert_eq!((watched.exit, watched.err.as_str()), (Exit::Done, ""));
        let last = watched.out.lines().last().unwrap_or_default();
        let is_create = last.contains("TOO_FEW_REPLICAS") && last.contains(action);
        assert!(is_create, "{}", watched.out);
        system.settle();
    }
    let watched = system.decree_stopping(&["watch"]);
    assert_eq!(watched.exit, Exit::Unreachable, "{}", watched.err);
}

#[test]
fn changed_replica_sets_are_printed_again() {
    let system = System::start(&["demo"]);
    let mut out = Lines {
        text: Vec::new(),
        left: 3,
    };
    let watch = ["get", "rs", "web-5f6a8b", "-w", "--server", &system.url];
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| decree_into("", &mut out, "decree", &watch));
        system.scale("web-5f6a8b", 5);
        let (exit, err) = watching.join().expect("it ends with its reader");
        assert_eq!((exit, err.as_str()), (Exit::Done, ""));
    });
    let text = String::from_utf8(out.text).expect("commands write text");
    let pattern = "NAMESPACE   NAME         DESIRED…\n…\n…web-5f6a8b   5 …";
    assert!(super::system::says(pattern, &text), "{text}");
}

#[test]
fn clusters_are_told_apart() {
    let system = System::start(&["east", "west"]);
    system.check(
        "
[4] explain default/web-5f6a8b
error: …CLUSTER_REQUIRED…--cluster…
[0] explain default/web-5f6a8b --cluster west
…Cluster:     west
…
[0] get rs
CLUSTER   NAMESPACE…
east …
east …
west …
west …",
    );
}

#[test]
fn server_without_agents_says_so() {
    let system = System::start(&[]);
    for command in ["get rs", "get sessions", "explain web", "simulate web"] {
        system.check(&format!(
            "[1] {command}
error: no agent is connected to {}, so the server knows nothing
hint: start one…
[1] {command} --cluster west
error: no agent of a cluster \"west\" is connected to …",
            system.url
        ));
    }
    system.check(
        "
[1] watch --cluster west
error: no agent of a cluster \"west\" is connected to …
[0] watch --count 0
…notice: no agent is connected to …",
    );
}

#[test]
fn wrong_name_is_noticed_once_an_agent_connects() {
    let mut system = System::start(&[]);
    let url = system.url.clone();
    let watch = ["watch", "nope", "--server", &url];
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| decree_into("", &mut Vec::<u8>::new(), "decree", &watch));
        system.add("demo", agent_core::budget::BudgetConfig::default());
        let (exit, err) = watching.join().expect("it ends");
        assert_eq!(exit, Exit::No, "{err}");
        assert!(
            err.contains("error: ReplicaSet default/nope not found"),
            "{err}"
        );
    });
}

#[test]
fn servers_that_do_not_answer_are_named() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let url = format!("http://{}", port.expect("a port"));
    for command in ["get rs", "explain a/b", "simulate a/b", "watch"] {
        let transcript = format!("[3] {command} --server {url}\nerror: {url}: …\nhint: …");
        check(&transcript);
    }
    for bad in [
        "127.0.0.1:50051",
        "https://127.0.0.1:50051",
        "http://",
        "'http://a b'",
        "''",
    ] {
        check(&format!("[2] get rs --server {bad}"));
    }
}

/// A reader that closes the stream after some lines.
struct Lines {
    text: Vec<u8>,
    left: usize,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.text.extend_from_slice(bytes);
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.left = self.left.saturating_sub(lines);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.left {
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Ok(()),
        }
    }
}

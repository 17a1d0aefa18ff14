//! `decree demo` as a shell starts it.

use super::{NO_TERMINAL, decree, decree_on_terminal, decree_reading, path, system::assert_says};
use crate::Exit;

const BEGINNING: &str = r"A server, an agent and a cluster of three nodes, all in this process.
The server is at http://127.0.0.1:…. Ctrl-C ends everything.

1. Ask which pods would go
  web-old has 7 pods. Ask first, which changes nothing:
  $ decree simulate default/web-old --replicas 2
  delete web-old-2xk7d  NOT_READY: not ready
  delete web-old-5vqrn  DELETION_COST: deletion cost -10 before 0
  delete web-old-8bwzc  CROWDED_NODE: 3 pods of this owner on node-a before 2
      pods of this owner on node-…
  delete web-old-4lmtp  READY_RECENTLY: ready for 5m…s before 3h0m
  delete web-old-6dfkq  RESTARTS: 4 restarts before 0
  Then do it:
  $ decree demo scale web-old 2
  default/web-old: delete 5 pods: web-old-2xk7d (NOT_READY), web-old-5vqrn
      (DELETION_COST), web-old-8bwzc (CROWDED_NODE), web-old-4lmtp
      (READY_RECENTLY), web-old-6dfkq (RESTARTS)
  ok: exactly the 5 pods that were named are gone

2. Kill the server during a scale-up
  $ decree demo scale web-new 40
  default/web-new: create 40 pods: TOO_FEW_REPLICAS: 0 active pods, 40 wanted
  The server is killed: … of 40 pods are there.
";

const NARROW: fn() -> Option<usize> = || Some(40);
const WIDE: fn() -> Option<usize> = || Some(200);

/// Runs the demo, which must succeed.
fn told(columns: fn() -> Option<usize>) -> String {
    let ended = decree_on_terminal(columns, &["demo", "--fast"]);
    let (exit, err) = (ended.exit, ended.err.as_str());
    assert_eq!((exit, err), (Exit::Done, ""), "{}", ended.out);
    assert!(!ended.out.contains(['\u{1b}', '\r']), "{}", ended.out);
    ended.out
}

#[test]
fn each_part_goes_as_told() {
    let out = told(NO_TERMINAL);
    let lines = BEGINNING.lines().count();
    let beginning: Vec<_> = out.lines().take(lines).collect();
    assert_says(BEGINNING, &beginning.join("\n"));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&out);
    for part in [
        "ok: 40 creates made 40 pods: none came twice, and none had to go",
        "delete all pods of web-new: 0 done, 40 refused: 40 pods are active, 0 being deleted, 40 wanted",
        "delete the pods of web-old as well: 0 done, 2 refused: pod default/web-old-",
        "is not controlled by replica set default/web-new",
        "create 40 more pods: 0 done, 40 refused: 40 pods are active, 0 being created, 40 wanted",
        "ok: the agent did none of it",
        "delete all pods of web-new: 10 done, 30 refused: deletes in replica set default/web-new are held since ",
        "Held back: by the agent: deletes in replica set default/web-new are held since ",
        "11 deletes in a minute, 10 are allowed; resume with: decree resume default/web-new",
        "ok: 30 of 40 pods are left, and none goes",
        "ok: all 40 pods are ready again",
        "Refused: QUOTA",
        "is forbidden: exceeded quota: pods, requested: pods=1, used: pods=44, limited: pods=44",
        "ok: 45 pods are ready",
        "1 compared, 1 unexplained; 0 not compared.",
        "default/web-old Count ",
        "decided at most 8 active pods done created up to 9 active pods why no more pods were desired since the last rest",
        "ok: the agent in shadow mode wrote nothing",
        "All 5 parts went as told, in ",
        "decree up --cluster kubernetes",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{out}");
    }
}

#[test]
fn text_fits_the_terminal_from_40_columns_on_and_is_no_wider_than_80() {
    for (terminal, columns) in [(NARROW, 40), (WIDE, 80)] {
        let out = told(terminal);
        // A single word is not broken, such as the name of a pod in a message of the cluster.
        let is_broken_off = |line: &&str| line.trim_start().contains(' ');
        let wide = out.lines().filter(|line| line.chars().count() > columns);
        let wide: Vec<_> = wide.filter(is_broken_off).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }
}

#[test]
fn objects_from_files_are_brought_to_their_size() {
    let ended = decree(&["demo", "-f", &path("docs/examples/web.yaml")]);
    assert_eq!(
        (ended.exit, ended.err.as_str()),
        (Exit::Done, ""),
        "{}",
        ended.out
    );
    assert!(
        ended
            .out
            .contains("ok: default/web-7d4b9c has 20 of 20 pods ready\n"),
        "{}",
        ended.out
    );
}

#[test]
fn part_that_does_not_come_to_its_end_is_named() {
    let web = path("docs/examples/web.yaml");
    let ended = decree(&["demo", "-f", &web, "--deadline", "1ms"]);
    assert_eq!(ended.exit, Exit::No);
    let cause = "error: part \"Bring everything to its size\": it did not get there within 0.001 s: \
        default/web-";
    assert!(ended.err.starts_with(cause), "{}", ended.err);
}

#[test]
fn objects_that_no_cluster_here_holds_are_refused_by_place() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let ended = decree_reading(service, &["demo", "-f", "-"]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
    assert!(
        ended
            .err
            .starts_with("error: -: document 1: kind: \"Service\""),
        "{}",
        ended.err
    );
}

#[test]
fn port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let ended = decree(&["demo", "--listen", &address]);
    assert_eq!(ended.exit, Exit::No);
    assert!(
        ended.err.contains(&address) && ended.err.contains("--listen"),
        "{}",
        ended.err
    );
}

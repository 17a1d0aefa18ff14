//! `decree demo` as a shell without a terminal starts it.

use super::{decree, decree_on_terminal, decree_reading, path, system::assert_says};
use crate::Exit;

const STORY: &str = r#"decree-server at http://127.0.0.1:…, decree-agent, embedded cluster "demo"

ReplicaSet web-old has 7 pods. Which would go if it were scaled to 2?
  $ decree simulate default/web-old --replicas 2
  delete web-old-2xk7d  NOT_READY       not ready
  delete web-old-5vqrn  DELETION_COST   deletion cost -10 before 0
  delete web-old-8bwzc  CROWDED_NODE    3 pods of this owner on node-a before 2
      pods of this owner on node-…
  delete web-old-4lmtp  READY_RECENTLY  ready for 5m…s before 3h0m
  delete web-old-6dfkq  RESTARTS        4 restarts before 0

Step 1: scale down
  > web-old is scaled from 7 to 2 replicas
  default/web-old: delete 5 pods: web-old-2xk7d (NOT_READY), web-old-5vqrn
      (DELETION_COST), web-old-8bwzc (CROWDED_NODE), web-old-4lmtp
      (READY_RECENTLY), web-old-6dfkq (RESTARTS)
  the surplus pods are gone, after … s
  These are the pods that the server had named.

Step 2: scale up
  > web-new is scaled from 0 to 4 replicas
  default/web-new: create 4 pods: TOO_FEW_REPLICAS: 0 active pods, 4 wanted
  every pod that is wanted is ready, after … s

Step 3: lose pods
  > pod web-new-… is deleted by hand, pod web-new-… is evicted
"#;

#[test]
fn story_names_victims_before_they_go_and_the_same_every_time() {
    let ended = decree(&["demo"]);
    assert_eq!(
        (ended.exit, ended.err.as_str()),
        (Exit::Done, ""),
        "{}",
        ended.out
    );
    let beginning: Vec<_> = ended.out.lines().take(STORY.lines().count()).collect();
    assert_says(STORY, &beginning.join("\n"));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&ended.out);
    for part in [
        "Step 4: lose a node > node-b goes down, and ",
        "> node-b is back, and stops the ",
        "> web-new is scaled from 4 to 8 replicas; a quota allows 8 pods in all",
        "6 of 8 pods are ready, and the server goes on trying, ",
        "The cluster refused the others: pods \"web-new-",
        "is forbidden: exceeded quota: pods, requested: pods=1, used: pods=8, limited: pods=8",
        "default/web-new   9   9   9",
        "default/web-old   2   2   2",
        "All 7 steps reached the goal, in ",
    ] {
        assert!(
            text.contains(&words(part)),
            "{part} is missing in:\n{}",
            ended.out
        );
    }
}

#[test]
fn two_runs_with_the_same_seed_tell_the_same_story() {
    let story = |seed: &str| {
        let ended = decree(&["demo", "--seed", seed]);
        assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
        without_measurements(&ended.out)
    };
    let (one, other) = (story("7"), story("8"));
    assert_eq!(one, story("7"));
    assert_ne!(one, other, "names are drawn from the seed");
}

/// Returns the story without its address, times, and how often the server tried again what a quota refused, and with it which name it
/// tried last, and whether a try was under way when the quota was raised: then it makes some of the pods, and the next one the others.
fn without_measurements(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with("STEP"));
    let mut is_raised = false;
    let kept = lines.filter(|line| {
        is_raised |= line.starts_with("Step 7: raise the quota");
        let repeats = line.trim_start().starts_with("(the same decision");
        let shares = is_raised && line.contains("default/web-new: create ");
        !repeats && !shares
    });
    kept.map(|line| {
        let words = line.split_whitespace();
        let kept = words.filter(|word| !is_time(word) && !word.starts_with("\"web-new-"));
        kept.collect::<Vec<_>>().join(" ")
    })
    .collect()
}

/// Returns whether a word is a time, such as `0.9` or `5m1s`.
fn is_time(word: &str) -> bool {
    word.starts_with(|it: char| it.is_ascii_digit()) && (word.contains('.') || word.ends_with('s'))
}

#[test]
fn text_fits_80_columns_and_steers_no_terminal() {
    let ended = decree_on_terminal(&["demo", "--fast"]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    let wide: Vec<_> = ended
        .out
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(!ended.out.contains(['\u{1b}', '\r']), "{}", ended.out);
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
            .contains("default/web-7d4b9c   20        20        20\n"),
        "{}",
        ended.out
    );
}

#[test]
fn step_that_misses_its_goal_is_named() {
    let ended = decree(&["demo", "--deadline", "1ms"]);
    assert_eq!(ended.exit, Exit::No);
    let cause = [
        "error: step \"",
        "\" did not reach its goal within 0.001 s: default/web-",
    ];
    let named = cause.iter().all(|part| ended.err.contains(part));
    assert!(named, "{}", ended.err);
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

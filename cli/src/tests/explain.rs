//! What a person wants to know about a ReplicaSet, about one of its pods, and for a bug report.

use std::io;

use agent_core::budget::{Action, BudgetConfig, Limit, Limits};
use agent_fake::{ApiError, Fault, Kind, Verb};
use serde_json::Value;

use super::{system::System, victims};
use crate::Exit;

#[test]
fn pod_is_told_where_it_stands_and_why_it_went() {
    let system = System::start(&["demo"]);
    let explain = |more: &[&str]| system.decree(&[&["explain", "web-5f6a8b"], more].concat());
    let none = ["simulate", "web-5f6a8b", "--replicas", "0", "-o", "json"];
    let pods = victims(&system.decree(&none).out);
    let pods: Vec<_> = pods.split_whitespace().map(str::to_owned).collect();
    let [first, ..] = pods.as_slice() else {
        panic!("it has pods")
    };
    let now = explain(&["--why", first]);
    assert_eq!((now.exit, now.err.as_str()), (Exit::Done, ""));
    assert!(
        now.out.starts_with(&format!(
            "{first} stays if default/web-5f6a8b has 3 replicas of 3 pods: it is number "
        )),
        "{}",
        now.out
    );
    let down = explain(&["--why", first, "--replicas", "1", "-o", "json"]);
    let down: Value = serde_json::from_str(&down.out).expect("JSON");
    assert_eq!(down["pods"].as_array().map(Vec::len), Some(3));
    let victim = down["pods"][0]["name"].as_str().expect("a name").to_owned();
    assert_eq!(down["pods"][0]["goes"], true);
    let shown = explain(&["--why", &victim, "--replicas", "1"]);
    assert!(
        shown
            .out
            .contains("  ------- 2 above go, 1 below stay -------\n"),
        "{}",
        shown.out
    );
    assert!(
        shown.out.contains(&format!("\n> 1       {victim}   ")),
        "{}",
        shown.out
    );
    let scaled = system.clusters[0].with(|it| it.scale("default", "web-5f6a8b", 1));
    scaled.expect("it is there");
    system.settle();
    let past = explain(&["--why", &victim]);
    assert_eq!((past.exit, past.err.as_str()), (Exit::Done, ""));
    assert!(
        past.out.starts_with(&format!("{victim} was deleted at 2")),
        "{}",
        past.out
    );
    assert!(
        past.out
            .contains("default/web-5f6a8b had 3 active pods, 1 wanted.\n"),
        "{}",
        past.out
    );
    assert!(
        past.out
            .contains("  ------- 2 above went, the others stayed -------\n"),
        "{}",
        past.out
    );
    let unknown = explain(&["--why", "web-x"]);
    assert_eq!((unknown.exit, unknown.out.as_str()), (Exit::No, ""));
}

#[test]
fn last_scale_down_is_a_table_of_the_pods_next_to_the_cut() {
    let system = System::start(&["demo"]);
    let scaled = system.clusters[0].with(|it| it.scale("default", "web-5f6a8b", 1));
    scaled.expect("it is there");
    system.settle();
    let table = system.decree(&["explain", "web-5f6a8b"]).out;
    let (_, table) = table
        .split_once("\nLast scale-down: 3 → 1 at 2")
        .expect("it has one");
    assert!(
        table
            .lines()
            .next()
            .is_some_and(|line| line.ends_with(" ago), 2 pods")),
        "{table}"
    );
    let rows: Vec<_> = table.lines().skip(2).collect();
    assert_eq!(rows.len(), 3, "{table}");
    assert!(
        rows[0].contains("   yes ") && rows[2].contains("   stays "),
        "{table}"
    );
    let unknown = system.decree(&["explain", "web-5f6a8b", "--why", "web-x"]);
    let past = "the last deletion does not name it";
    assert!(unknown.err.contains(past), "{}", unknown.err);
}

#[test]
fn status_writes_are_folded_away_and_say_what_differed() {
    let system = System::start(&["demo"]);
    let folded = system.decree(&["explain", "web-5f6a8b"]);
    assert!(!folded.out.contains("STATUS_DIFFERS"), "{}", folded.out);
    assert!(folded.out.contains("(--all shows "), "{}", folded.out);
    let all = system.decree(&["explain", "web-5f6a8b", "--all"]);
    let newest = all.out.lines().find(|line| line.contains("STATUS_DIFFERS"));
    assert!(
        newest.is_some_and(|line| line.contains(" 2 to 3") || line.contains(" to 3")),
        "{}",
        all.out
    );
}

#[test]
fn timeline_tells_what_led_here() {
    let system = System::start(&["demo"]);
    let all = || system.decree(&["explain", "web-5f6a8b", "--all"]).out;
    assert!(!all().contains(" scaled "), "{}", all());
    let scaled = system.clusters[0].with(|it| it.scale("default", "web-5f6a8b", 1));
    scaled.expect("it is there");
    let deleted = " done     delete: 2 of 2 done; TOO_MANY_REPLICAS: 3 active pods, 1 wanted\n";
    system.wait_until(|| all().contains(deleted));
    let said = all();
    let (_, timeline) = said
        .split_once("\nTimeline, in UTC:\n")
        .expect("it has one");
    let expected = [
        " EVENT    DETAIL\n",
        deleted,
        " scaled   3 to 1 wanted\n",
        " done     create: 3 of 3 done; ",
    ];
    let places = expected.map(|part| timeline.find(part));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{timeline}"
    );
    let short = system.decree(&["explain", "web-5f6a8b"]).out;
    assert!(!short.contains("Timeline:"), "{short}");
}

#[test]
fn what_is_held_back_is_told_with_what_ends_it() {
    let one_delete = Limits {
        replica_set: Limit::count(1),
        ..Limits::default()
    };
    let budget = BudgetConfig {
        action: Action::Hold,
        deletes: one_delete,
        ..BudgetConfig::default()
    };
    let system = System::start_within(budget, &["demo"]);
    let scale = |replicas| {
        let scaled = system.clusters[0].with(|it| it.scale("default", "web-5f6a8b", replicas));
        scaled.expect("it is there");
    };
    let held_back = |part: &str| {
        let said = system.decree(&["explain", "web-5f6a8b"]).out;
        let mut lines = said.lines();
        lines.any(|line| line.starts_with("Held back:   ") && line.contains(part))
    };
    scale(1);
    system.wait_until(|| {
        held_back("by the agent: deletes in replica set default/web-5f6a8b are held since 2")
    });
    const HELD: &str = "Held by a budget: 2 deletes in a minute, 1 are allowed";
    let get = || system.decree(&["get", "rs"]).out;
    system.wait_until(|| get().contains("Blocked   ") && get().contains(HELD));
    let said = system.decree(&["explain", "web-5f6a8b"]).out;
    assert!(said.contains(&format!("\nCause:       {HELD}")), "{said}");
    let next = "\nNext:        decree resume default/web-5f6a8b\n";
    assert!(said.contains(next), "{said}");
    assert!(held_back(
        ": 2 deletes in a minute, 1 are allowed; resume with: decree resume default/web-5f6a8b"
    ));
    system.clusters[0].with(|it| {
        let busy = Fault::refuse(ApiError::too_many_requests(600));
        it.faults_mut().add(busy.on(Verb::Create).of(Kind::Pod));
    });
    scale(4);
    system.wait_until(|| held_back("by the cluster: Too many requests, please try again later"));
    assert!(!held_back("by the agent"), "nothing is to be deleted");
}

#[test]
fn what_the_cluster_refuses_is_told_in_its_words() {
    const WORDS: &str = "pods is forbidden: exceeded quota: pods, requested: pods=1, used: pods=25, limited: pods=25";
    let system = System::start(&["demo"]);
    let explain = || system.decree(&["explain", "web-5f6a8b"]).out;
    assert!(!explain().contains("Refused:"), "{}", explain());
    system.clusters[0].with(|it| {
        let full = Fault::refuse(ApiError::new(403, "Forbidden", WORDS));
        it.faults_mut().add(full.on(Verb::Create).of(Kind::Pod));
        it.scale("default", "web-5f6a8b", 5).expect("it is there");
    });
    let refused = |said: &str| {
        let mut lines = said.lines();
        let line = lines.find(|line| line.starts_with("Refused:     QUOTA, "));
        line.is_some_and(|line| line.contains(" times since 2") && line.ends_with(WORDS))
    };
    system.wait_until(|| refused(&explain()));
    // The attempts are one line, among the decisions and in the timeline.
    let attempts = |said: &str| {
        let lines = said.lines().filter(|line| line.contains("  create   2 "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let folded = attempts(&explain());
    assert_eq!(folded.len(), 1, "{folded:?}");
    let told = " TOO_FEW_REPLICAS: 3 active pods, 5 wanted, ";
    assert!(
        folded[0].contains(told) && folded[0].contains(" times since 2"),
        "{folded:?}"
    );
    let all = system.decree(&["explain", "web-5f6a8b", "--all"]).out;
    let failed = all
        .lines()
        .find(|line| line.contains("  failed  ") && line.contains("  create: 0 of 2 done, "));
    assert!(
        failed.is_some_and(|line| line.contains(" times since 2")),
        "{all}"
    );
    const CAUSE: &str = "Quota exceeded in default: 25 of 25 pods";
    let get = |more: &[&str]| system.decree(&[&["get", "rs"], more].concat()).out;
    system.wait_until(|| get(&[]).contains(CAUSE));
    system.wait_until(|| get(&["-o", "wide"]).contains(WORDS));
    // ReplicaSets that need a person come first.
    let first = get(&["--no-headers"]);
    assert!(first.starts_with("default   web-5f6a8b "), "{first}");
    system.wait_until(|| explain().contains(&format!("\nCause:       {CAUSE}, retry ")));
    let next = "\nNext:        kubectl -n default describe resourcequota\n";
    assert!(explain().contains(next), "{}", explain());
    system.clusters[0].with(|it| it.faults_mut().clear());
    system.wait_until(|| !explain().contains("Refused:"));
}

#[test]
fn dump_names_nothing_and_overwrites_nothing() {
    let system = System::start(&["secret-cluster"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dump.tar.gz");
    let dump = ["sysdump", "--out", file.to_str().expect("it is text")];
    let written = system.decree(&dump);
    assert_eq!((written.exit, written.err.as_str()), (Exit::Done, ""));
    let packed = std::fs::File::open(&file).expect("it was written");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed));
    let entries = archive.entries().expect("it is an archive");
    let texts = entries.map(|entry| {
        let mut entry = entry.expect("it is whole");
        let path = entry.path().expect("it is text").display().to_string();
        let mut text = String::new();
        io::Read::read_to_string(&mut entry, &mut text).expect("it is text");
        (path, text)
    });
    let texts: Vec<_> = texts.collect();
    let paths: Vec<_> = texts.iter().map(|(path, _)| path.as_str()).collect();
    let expected = [
        "decree-sysdump/about.json",
        "decree-sysdump/sessions.json",
        "decree-sysdump/replica-sets.json",
        "decree-sysdump/differences.json",
        "decree-sysdump/explain/01.json",
        "decree-sysdump/explain/02.json",
    ];
    assert_eq!(paths, expected);
    for (path, text) in &texts {
        for name in ["secret-cluster", "web", "node-", "default"] {
            assert!(!text.contains(name), "{path} names {name}: {text}");
        }
    }
    assert!(
        texts[2].1.contains("REPLICA_SET_STATE_IN_SYNC"),
        "{}",
        texts[2].1
    );
    let again = system.decree(&dump);
    assert_eq!((again.exit, again.out.as_str()), (Exit::No, ""));
}

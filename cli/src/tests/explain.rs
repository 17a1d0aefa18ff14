//! What a person wants to know about a ReplicaSet, about one of its pods, and for a bug report.

use std::io;

use agent_core::budget::{Action, BudgetConfig, Limit, Limits};
use agent_fake::{ApiError, Fault, Kind, Verb};
use serde_json::Value;

use super::{
    system::{System, says},
    victims,
};
use crate::Exit;

#[test]
fn scale_down_is_told_before_and_after() {
    let system = System::start(&["demo"]);
    let none = "simulate web-5f6a8b --replicas 0 -o json".split(' ');
    let pods = victims(&system.decree(&none.collect::<Vec<_>>()).out);
    let first = pods.split_whitespace().next().expect("it has pods");
    let down = format!("explain web-5f6a8b --why {first} --replicas 1 -o json");
    let down = system.decree(&down.split(' ').collect::<Vec<_>>());
    let down: Value = serde_json::from_str(&down.out).expect("JSON");
    assert_eq!(down["pods"].as_array().map(Vec::len), Some(3));
    assert_eq!(down["pods"][0]["goes"], true);
    let victim = down["pods"][0]["name"].as_str().expect("a name");
    let why = format!("explain web-5f6a8b --why {victim}");
    system.check(&format!(
        "
[0] explain web-5f6a8b --why {first}
{first} stays if default/web-5f6a8b has 3 replicas of 3 pods: it is number …
[0] {why} --replicas 1
…
> 1       {victim}   …  ------- 2 above go, 1 below stay -------
…
[0] explain web-5f6a8b
…(--all shows …
[0] explain web-5f6a8b --all
…STATUS_DIFFERS: … to 3…"
    ));
    for (line, part) in [
        ("explain web-5f6a8b", "STATUS_DIFFERS"),
        ("explain web-5f6a8b --all", " scaled "),
    ] {
        let said = system.decree(&line.split(' ').collect::<Vec<_>>()).out;
        assert!(!said.contains(part), "{said}");
    }
    system.scale("web-5f6a8b", 1);
    system.until(
        "explain web-5f6a8b --all",
        "…\nTimeline, in UTC:\n… EVENT    DETAIL\n\
         … done     delete: 2 of 2 done; TOO_MANY_REPLICAS: 3 active pods, 1 desired\n\
         … scaled   3 to 1 desired\n… done     create: 3 of 3 done; …",
    );
    system.settle();
    system.check(&format!(
        "
[0] {why}
{victim} was deleted at 2…default/web-5f6a8b had 3 active pods, 1 desired.
…  ------- 2 above went, the others stayed -------
…
[1] explain web-5f6a8b --why web-x
error: …the last deletion does not name it
hint: …
[0] explain web-5f6a8b
…
Last scale-down: 3 → 1 at 2… ago), 2 pods
…   yes …   yes …   stays …"
    ));
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
    system.scale("web-5f6a8b", 1);
    system.until(
        "explain web-5f6a8b",
        "…\nCause:       Held by a budget: 2 deletes in a minute, 1 are allowed…\n\
         Next:        decree resume default/web-5f6a8b\n\
         …\nHeld back:   by the agent: deletes in replica set default/web-5f6a8b are held since 2…\
         : 2 deletes in a minute, 1 are allowed; resume with: decree resume default/web-5f6a8b\n…",
    );
    system.until(
        "get rs",
        "…Blocked   Held by a budget: 2 deletes in a minute, 1 are allowed…",
    );
    system.clusters[0].with(|it| {
        let busy = Fault::refuse(ApiError::too_many_requests(600));
        it.faults_mut().add(busy.on(Verb::Create).of(Kind::Pod));
    });
    system.scale("web-5f6a8b", 4);
    let said = system.until(
        "explain web-5f6a8b",
        "…\nHeld back:   by the cluster: Too many requests, please try again later…",
    );
    assert!(
        !said.contains("by the agent"),
        "nothing is to be deleted: {said}"
    );
}

#[test]
fn what_the_cluster_refuses_is_told_in_its_words() {
    const WORDS: &str = "pods is forbidden: exceeded quota: pods, requested: pods=1, used: pods=25, limited: pods=25";
    const CAUSE: &str = "Quota exceeded in default: 25 of 25 pods";
    let system = System::start(&["demo"]);
    let explain = "explain web-5f6a8b";
    system.clusters[0].with(|it| {
        let full = Fault::refuse(ApiError::new(403, "Forbidden", WORDS));
        it.faults_mut().add(full.on(Verb::Create).of(Kind::Pod));
    });
    system.scale("web-5f6a8b", 5);
    let said = system.until(
        explain,
        &format!(
            "…\nCause:       {CAUSE}, retry …\nNext:        kubectl -n default describe resourcequota\n\
             …\nRefused:     QUOTA, … times since 2…: {WORDS}\n\
             …  create   2 … TOO_FEW_REPLICAS: 3 active pods, 5 desired, … times since 2…"
        ),
    );
    // The attempts are one line, among the decisions and in the timeline.
    let attempts = said.lines().filter(|line| line.contains("  create   2 "));
    assert_eq!(attempts.count(), 1, "{said}");
    for (line, pattern) in [
        (
            "explain web-5f6a8b --all",
            "…  failed  … create: 0 of 2 done, … times since 2…",
        ),
        ("get rs -o wide", &*format!("…{WORDS}…")),
        // ReplicaSets that need a person come first.
        (
            "get rs --no-headers",
            &format!("default   web-5f6a8b …{CAUSE}…"),
        ),
    ] {
        system.until(line, pattern);
    }
    system.clusters[0].with(|it| it.faults_mut().clear());
    system.wait_until(|| {
        let said = system.decree(&["explain", "web-5f6a8b"]).out;
        !says("…Refused:…", &said)
    });
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

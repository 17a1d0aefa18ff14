//! The conformance kit gives our agents a full score, and a naive agent a low one.

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

use conformance::{Program, RULES, Rule, UNARY_RULES};
use tempfile::TempDir;
use tests::{binaries, depth, tools};

use crate::{
    embedded::Embedded,
    keeper,
    language::Examples,
    timed::{Mistake, Timed},
};

#[tokio::test]
async fn our_agent_keeps_each_rule() {
    let score = conformance::run_agent(&Embedded::new()).await;
    let score = score.expect("a port is free");
    assert!(score.is_full(), "{score}");
}

/// The test of the document does the same with the agent in Go.
#[tokio::test]
async fn agent_in_python_keeps_each_rule() {
    let examples = tests::or_skip!(Examples::python());
    let folder = TempDir::new().expect("a folder");
    let command = examples.subject(folder.path());
    let score = conformance::run_agent(&Program { command }).await;
    let score = score.expect("it starts");
    keeper::end_processes(folder.path());
    assert!(score.is_full(), "{score}");
}

#[tokio::test]
async fn naive_agent_breaks_the_rules_that_it_does_not_know() {
    // For each of them, the kit waits to the end of its patience.
    if !depth::is_full() {
        return;
    }
    let (Some(python), Some(packages)) = (tools::python(), tools::python_client()) else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let program = binaries::checkout().join("tests/clients/naive.py");
    let words = [
        "env".to_owned(),
        format!("PYTHONPATH={}", packages.display()),
        python.display().to_string(),
        program.display().to_string(),
        "{address}".to_owned(),
        "{replicas}".to_owned(),
        folder.path().display().to_string(),
    ];
    let subject = Program {
        command: words.into(),
    };
    let score = conformance::run_agent(&subject).await.expect("it starts");
    let broken = score.0.iter().filter(|row| row.verdict.is_err());
    let broken: Vec<_> = broken.map(|row| row.rule.words).collect();
    // A kill loses a pod because of the deletion that hit another pod, and because of the create of an ended session. A server
    // that reads late misses outcomes because of adoptions, which have none.
    assert_eq!(
        broken,
        [
            "a batch of another session has no effect",
            "a batch of another epoch has no effect",
            "a superseded agent does not come back at once",
            "a gap in the numbers of the server ends the session",
            "a number of the server that comes twice ends the session",
            "the ReplicaSet selects each pod that it controls",
            "a Resync is answered with a list, which contains what was written",
            "a batch of a ReplicaSet that is not known by name and uid has no effect",
            "a create of a name that exists makes no second pod",
            "each operation has exactly one outcome",
            "an adoption of a missing pod has an outcome other than Done",
            "a deletion hits the pod of its uid and no other",
            "a quiet agent sends heartbeats",
            "a server that reads late gets each outcome, once",
            "calls that are in flight at a cut end before the next Hello, and the lists show what they did",
            "a drained agent sends its outcomes, closes the stream and comes back",
            "a drained agent stays away for as long as the Drain asks",
            "an agent that is stopped closes its stream and ends",
            "a server that is silent for four intervals is left",
            "an agent that was killed comes back with what it had made, and no more",
            "an agent that is refused comes back after the delay it was told",
        ],
        "{score}"
    );
}

/// All controllers run concurrently, because each of them mostly waits.
#[tokio::test]
async fn mistake_of_a_controller_on_a_timer_breaks_the_rule_that_names_it() {
    let set = "each request has the same ReplicaSet, with the desired number and a selector that matches its template";
    let revived =
        "a controller that was killed comes back with its pods, and makes none of them twice";
    let twice = "an answer that comes again makes no second pod";
    let gone = "a deletion of a pod that is gone does not end the turn";
    let labels =
        "each pod of a request has its own uid, and belongs to the ReplicaSet, which selects it";
    let made = "a name to create becomes a pod, which later requests list";
    let taken = "a name that exists does not end the turn";
    let other = "a deletion of another uid has no effect";
    let failed = "a call that fails changes nothing, and the controller asks again";
    let nothing = "an answer without a decision, or with quarantined, changes nothing";
    let late = "a call without an answer ends within 20 seconds, and the controller asks again";
    let hasty = "a controller waits for the end of a call before the next call";
    let expected: [(_, &[&str]); _] = [
        (Mistake::None, &[]),
        (Mistake::Selector, &[set]),
        (Mistake::Replicas, &[set]),
        (Mistake::OtherSet, &[set]),
        (Mistake::Labels, &[labels]),
        (Mistake::OtherName, &[made]),
        (Mistake::Doubles, &[twice]),
        (Mistake::Overwrites, &[twice]),
        (Mistake::Forgets, &[revived]),
        (Mistake::StopsAtTaken, &[taken]),
        (Mistake::ByName, &[other]),
        // A pod that is still there is not gone at the second deletion either.
        (Mistake::Keeps, &["a deleted pod is listed no longer", gone]),
        (Mistake::StopsAtGone, &[gone]),
        (Mistake::ActsOnFailure, &[failed]),
        (Mistake::ActsOnNothing, &[nothing]),
        (Mistake::Waits, &[late]),
        (Mistake::Hastes, &[hasty]),
    ];
    let runs = expected.map(|(mistake, words)| {
        let run = async move { conformance::run_unary(&Timed::new(mistake)).await };
        (mistake, words, tokio::spawn(run))
    });
    let (mut named, mut wrong) = (BTreeSet::new(), Vec::new());
    for (mistake, words, run) in runs {
        let score = run.await.expect("no panic").expect("a port is free");
        let broken = score.0.iter().filter(|row| row.verdict.is_err());
        let broken: Vec<_> = broken.map(|row| row.rule.words).collect();
        if broken != words {
            wrong.push(format!("{mistake:?}: {score}"));
        }
        named.extend(broken);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(named.len(), UNARY_RULES.len(), "each rule can be broken");
}

#[test]
fn agent_that_does_not_start_breaks_each_rule() {
    breaks_each_rule(&[], RULES);
    breaks_each_rule(&["--unary"], UNARY_RULES);
}

#[test]
fn score_that_nobody_reads_is_still_that_of_the_agent() {
    let mut command = Command::new(binaries::folder().join("decree-conformance"));
    command.args(["--target", "/no/such/agent"]);
    let mut kit = command.stdout(Stdio::piped()).spawn().expect("it is built");
    drop(kit.stdout.take());
    let status = kit.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
}

fn breaks_each_rule(flags: &[&str], rules: &[Rule]) {
    let mut command = Command::new(binaries::folder().join("decree-conformance"));
    command.args(["--target", "/no/such/agent"]).args(flags);
    let output = command.output().expect("it is built");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let page = String::from_utf8(output.stdout).expect("it is text");
    let count = |begin: &str| page.lines().filter(|it| it.starts_with(begin)).count();
    let why = "        not reached: it does not start: ";
    let counts = [count("  FAIL  "), count(why)];
    assert_eq!(counts, [rules.len(); 2], "{page}");
}

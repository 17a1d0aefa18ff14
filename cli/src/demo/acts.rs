//! The parts of the demo: commands with what must come of them.

use std::time::Duration;

use agent_core::preferences::Preference;
use agent_fake::{Fault, Kind, Verb};
use decree_agent::cluster::fake::BUSY;
use serde_json::json;

use self::Step::{Do, Run, Say};
use super::stage::{Stage, TWICE, Writes};
use crate::{
    exit::{Exit, Failure},
    sandbox::beginning::{NAMESPACE, NEW, OLD},
};

pub(super) enum Step {
    Say(&'static str),
    /// A command line, and the words that its output must have. In the line, `@SHADOW` is the address of a server.
    Run(&'static str, &'static [&'static str]),
    /// Something that no command does; returns what to say of it.
    Do(fn(&mut Stage) -> Result<String, Failure>),
}

/// The replicas of the newer ReplicaSet after its scale-up.
const PODS: u64 = 40;
/// The delay of creates while the server is killed, so that some creates are in flight.
const ANSWER_LATE: Duration = Duration::from_millis(100);
/// The minimum number of pods when the server is killed.
const KILLED_AT: usize = 7;

/// The pods of the older ReplicaSet after its first scale-down, and how busy they are. If nobody asked, the first one would be deleted.
const BUSY_PODS: [(&str, &str); 2] = [("web-old-7ghjx", "17"), ("web-old-9nstz", "0")];

pub(super) const ACTS: [(&str, &[Step]); 7] = [
    (
        "Ask which pods would go",
        &[
            Run(
                "simulate web-old --replicas 2",
                &[
                    "delete web-old-2xk7d NOT_READY",
                    "delete web-old-5vqrn DELETION_COST",
                    "delete web-old-8bwzc CROWDED_NODE",
                    "delete web-old-4lmtp READY_RECENTLY",
                    "delete web-old-6dfkq RESTARTS",
                ],
            ),
            Say("Nothing has changed yet. Now scale; exactly these pods are deleted:"),
            Run("demo scale web-old 2", &["web-old scaled to 2"]),
            Run("get rs web-old", &["web-old 2 2 2 2 In sync"]),
            Run(
                "explain web-old",
                &[
                    "Last scale-down: 7 → 2",
                    "web-old-2xk7d yes",
                    "web-old-5vqrn yes",
                    "web-old-8bwzc yes",
                    "web-old-4lmtp yes",
                    "web-old-6dfkq yes",
                ],
            ),
        ],
    ),
    (
        "Spare the busy pods",
        &[
            Do(answer_costs),
            Run("simulate web-old --replicas 1", &["delete web-old-7ghjx"]),
            Say("The scale-down asks the pods, and deletes the idle one:"),
            Run("demo scale web-old 1", &["web-old scaled to 1"]),
            Run(
                "explain web-old --why web-old-9nstz",
                &[
                    "deletion cost 0 (asked) < 17 (asked)",
                    "web-old-7ghjx stays",
                ],
            ),
        ],
    ),
    (
        "Kill the server during a scale-up",
        &[
            Do(slow_down),
            Run("demo scale web-new 40", &["web-new scaled to 40"]),
            Do(kill_server),
            Do(start_server),
            Run("get rs web-new", &["web-new 40 40 40 40 In sync"]),
            Do(check_creates),
        ],
    ),
    (
        "Hold back a mistake",
        &[
            Say(
                "By mistake, someone scales to 0. The agent deletes at most 10 pods of a ReplicaSet in a minute:",
            ),
            Run("demo scale web-new 0", &["web-new scaled to 0"]),
            Run(
                "explain web-new",
                &[
                    "0 desired, 30 current",
                    "Held back: by the agent: ",
                    "resume with: decree resume default/web-new",
                ],
            ),
            Say("Someone corrects the number, and lets the agent delete again:"),
            Run("demo scale web-new 40", &["web-new scaled to 40"]),
            Run("demo resume web-new", &["web-new annotated"]),
            Run("get rs web-new", &["web-new 40 40 40 40 In sync"]),
        ],
    ),
    (
        "Explain what a quota refuses",
        &[
            Run("demo quota 44", &["set to 44 pods"]),
            Run("demo scale web-new 44", &["web-new scaled to 44"]),
            Run("explain web-new", &["Refused: QUOTA", "exceeded quota"]),
            Run("demo quota 100", &["set to 100 pods"]),
            Say("A change of the ReplicaSet ends its wait for the next attempt:"),
            Run("demo scale web-new 45", &["web-new scaled to 45"]),
            Run("get rs web-new", &["web-new 45 45 45 45 In sync"]),
        ],
    ),
    (
        "Drain a node without losing a replica",
        &[
            Do(prefer_surge),
            Run(
                "demo drain node-b",
                &["node-b cordoned", "without a ready replacement"],
            ),
            Run(
                "get rs web-new",
                &["In sync: ", "in advance for", "on cordoned node-b"],
            ),
            Say("The replacements are ready, so a budget allows the evictions:"),
            Run("demo drain node-b", &["node-b drained"]),
            Run("get rs web-new", &["web-new 45 45 45 45 In sync"]),
            Do(check_drain),
        ],
    ),
    (
        "Compare with another controller",
        &[
            Say(
                "Meanwhile, an agent in shadow mode watched a second cluster. Its controller scaled web-old from 7 to 8, and created a pod twice.",
            ),
            Run(
                "diff --server @SHADOW",
                &["Unexplained: 1", "web-old Count"],
            ),
            Do(check_shadow),
        ],
    ),
];

fn answer_costs(stage: &mut Stage) -> Result<String, Failure> {
    stage.cluster.with(|cluster| {
        for (pod, busy) in BUSY_PODS {
            let answer = json!({"metadata": {"annotations": {BUSY: busy}}});
            cluster.patch(Kind::Pod, NAMESPACE, pod, &answer)?;
        }
        let source = json!({Preference::ScaleInCost.annotation(): "http://:8080/busy"});
        let patch = json!({"metadata": {"annotations": source}});
        cluster.patch(Kind::ReplicaSet, NAMESPACE, OLD, &patch)
    })?;
    let [(busy, jobs), (idle, _)] = BUSY_PODS;
    Ok(format!(
        "With the annotation decree.dev/scale-in-cost, pods are asked how busy they are. {busy} has {jobs} jobs, and {idle} has none. A preview \
         asks nobody:"
    ))
}

fn slow_down(stage: &mut Stage) -> Result<String, Failure> {
    stage.before = stage.writes();
    let late = Fault::delay(ANSWER_LATE).on(Verb::Create).of(Kind::Pod);
    stage.cluster.with(|it| it.faults_mut().add(late));
    Ok("The cluster answers each create after 0.1 s, so that some are in flight:".to_owned())
}

fn kill_server(stage: &mut Stage) -> Result<String, Failure> {
    let pods = stage.until(|| match stage.pods_of(NEW) {
        pods if pods >= KILLED_AT => Ok(pods),
        pods => Err(format!("only {pods} pods are created")),
    })?;
    stage.kill_server();
    stage.cluster.with(|it| it.faults_mut().clear());
    Ok(format!(
        "The server is killed; at least {pods} of {PODS} pods exist."
    ))
}

fn start_server(stage: &mut Stage) -> Result<String, Failure> {
    stage.start_server()?;
    Ok("A server is started. All that it knows comes from the agent:".to_owned())
}

fn check_creates(stage: &mut Stage) -> Result<String, Failure> {
    let (before, now) = (stage.before, stage.writes());
    check(
        now.creates == before.creates + PODS && now.deletes == before.deletes,
        "40 creates made 40 pods: none was created twice, and none was deleted",
    )
}

fn prefer_surge(stage: &mut Stage) -> Result<String, Failure> {
    stage.before = stage.writes();
    let patch = json!({"metadata": {"annotations": {Preference::Surge.annotation(): "true"}}});
    stage.cluster.with(|cluster| {
        let mut sets = [OLD, NEW].into_iter();
        sets.try_for_each(|set| {
            let patched = cluster.patch(Kind::ReplicaSet, NAMESPACE, set, &patch);
            patched.map(drop)
        })
    })?;
    Ok("The Deployment gets the annotation decree.dev/surge-on-eviction: \"true\".".to_owned())
}

fn check_drain(stage: &mut Stage) -> Result<String, Failure> {
    let (before, now) = (stage.before, stage.writes());
    check(
        now.creates > before.creates && now.deletes == before.deletes,
        "the agent created the replacements in advance, and deleted no pod",
    )
}

fn check_shadow(stage: &mut Stage) -> Result<String, Failure> {
    let only_other = Writes {
        creates: TWICE.len() as u64,
        ..Writes::default()
    };
    check(
        stage.writes_in_shadow() == only_other,
        "the agent in shadow mode wrote nothing",
    )
}

fn check(is_so: bool, what: &str) -> Result<String, Failure> {
    if is_so {
        return Ok(format!("ok: {what}"));
    }
    Err(Failure::new(Exit::No, format!("expected: {what}")))
}

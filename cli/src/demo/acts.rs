//! The parts of a demo: the actions, their expected effects, and the text for both.

use std::{collections::BTreeSet, time::Duration};

use agent_core::budget::{self, BudgetConfig, Limit};
use agent_fake::{Cluster, Fault, Kind, Verb};
use decree::v1::event::Event;
use decree_agent::resume::ResumeRequest;

use super::{
    rogue::Rogue,
    script::{Script, named},
    shadowed::{self, Asking},
    standing::{Writes, all_observed, pods_of, references, replica_set, standings},
};
use crate::{
    diff,
    exit::Failure,
    page, record, resume,
    sandbox::{
        CLUSTER, Sandbox,
        beginning::{NAMESPACE, NEW, OLD},
    },
    simulate,
};

/// The replicas of the newer ReplicaSet after its scale-up.
const PODS: i32 = 40;
/// The number of deletes of one ReplicaSet that the agent allows in a minute.
const DELETES_MAX: u32 = 10;
/// The delay of creates in the cluster while the script kills the server, so that some creates are in flight.
const ANSWER_LATE: Duration = Duration::from_millis(100);
/// The minimum number of pods when the script kills the server.
const KILLED_AT: usize = 7;
/// The timeout of a request to the agent.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn budget() -> BudgetConfig {
    let mut budget = BudgetConfig {
        action: budget::Action::Hold,
        ..BudgetConfig::default()
    };
    budget.deletes.replica_set = Limit::count(DELETES_MAX);
    budget
}

pub(super) async fn play(
    script: &mut Script<'_, '_>,
    seed: u64,
    has_keys: bool,
) -> Result<(), Failure> {
    let ends = if has_keys { "q or Ctrl-C" } else { "Ctrl-C" };
    script.say(&format!(
        "A server, an agent and a cluster of three nodes, all in this process.\nThe server is at \
         http://{}. {ends} ends everything.",
        script.sandbox.running.server.addresses.grpc
    ))?;
    let shadowed = shadowed::open(seed).await?;
    script.until(all_observed).await?;
    name_victims(script).await?;
    kill_server(script).await?;
    stop_rogue(script).await?;
    meet_quota(script).await?;
    compare(script, shadowed).await
}

/// Brings the objects of the cluster to their size.
pub(super) async fn bring_to_size(script: &mut Script<'_, '_>) -> Result<(), Failure> {
    script.part("Bring everything to its size").await?;
    script.settle().await?;
    for standing in script.look(standings) {
        script.line(&format!("ok: {standing}")).await?;
    }
    Ok(())
}

/// The server names the victims of a scale-down and its reasons; then exactly these pods are deleted.
async fn name_victims(script: &mut Script<'_, '_>) -> Result<(), Failure> {
    const REPLICAS: i32 = 2;
    script.part("Ask which pods would go").await?;
    let before = script.look(|cluster| pods_of(cluster, OLD));
    let count = before.len();
    let intro = format!("{OLD} has {count} pods. Ask first, which changes nothing:");
    script.line(&intro).await?;
    let words = format!("simulate {NAMESPACE}/{OLD} --replicas {REPLICAS}");
    script.command(&words).await?;
    let client = &script.sandbox.running.server.client;
    let decision = simulate::ask(client, CLUSTER, named(OLD), Some(REPLICAS)).await?;
    let mut victims = BTreeSet::new();
    for victim in decision.decision.unwrap_or_default().deletes {
        let name = victim.pod.unwrap_or_default().name;
        let reason = victim.reason.as_ref().map(record::reason);
        let reason = reason.unwrap_or_default();
        script.line(&format!("delete {name}  {reason}")).await?;
        victims.insert(name);
    }
    script.line("Then do it:").await?;
    script.scale(OLD, REPLICAS).await?;
    script.settle().await?;
    let after = script.look(|cluster| pods_of(cluster, OLD));
    let is_same = before.difference(&after).eq(&victims);
    let count = victims.len();
    let what = format!("exactly the {count} pods that were named are gone");
    script.check(is_same && !victims.is_empty(), &what).await
}

/// A server that starts without state during a scale-up takes no pod for missing.
async fn kill_server(script: &mut Script<'_, '_>) -> Result<(), Failure> {
    script.part("Kill the server during a scale-up").await?;
    let before = script.look(Writes::of);
    let late = Fault::delay(ANSWER_LATE).on(Verb::Create).of(Kind::Pod);
    script.sandbox.cluster.with(|it| it.faults_mut().add(late));
    script.scale(NEW, PODS).await?;
    let is_amid = |cluster: &Cluster| pods_of(cluster, NEW).len() >= KILLED_AT;
    script.until(is_amid).await?;
    script.sandbox.kill_server();
    let there = script.count(NEW);
    script.sandbox.cluster.with(|it| it.faults_mut().clear());
    script.decisions().await?;
    let killed = format!("The server is killed: {there} of {PODS} pods are there.");
    script.line(&killed).await?;
    script.sandbox.start_server().await?;
    let started = "Another one is started. All that it knows comes from the agent:";
    script.line(started).await?;
    script.settle().await?;
    let (after, pods) = script.look(|it| (Writes::of(it), pods_of(it, NEW).len()));
    let creates = after.creates.saturating_sub(before.creates);
    let deletes = after.deletes.saturating_sub(before.deletes);
    let is_exact = creates == u64::from(PODS.unsigned_abs()) && deletes == 0;
    let what = format!("{creates} creates made {pods} pods: none came twice, and none had to go");
    script.check(is_exact, &what).await
}

/// The agent refuses what no correct server requests, and limits the rest; a person resumes it.
async fn stop_rogue(script: &mut Script<'_, '_>) -> Result<(), Failure> {
    script.part("Stop a rogue server").await?;
    let before = script.count(NEW);
    let writes = script.look(Writes::of);
    script.sandbox.kill_server();
    let killed = "The server is killed, and a rogue server takes its address. The agent lists its cluster for \
                  a server at most every ten seconds.";
    script.line(killed).await?;
    let address = script.sandbox.running.server.addresses.grpc.tcp();
    let address = address.ok_or_else(|| script.failed("the server has no port"))?;
    let own = script.look(|it| references(it, NEW));
    let others = script.look(|it| references(it, OLD));
    let set = script.look(|it| replica_set(it, NEW));
    let mut rogue = Rogue::start(address, script.deadline, set).await?;
    script.line("The rogue server asks for:").await?;
    let all = format!("delete all pods of {NEW}");
    let said = rogue.delete(&own).await?;
    script.line(&format!("{all}: {said}")).await?;
    let said = rogue.delete(&others).await?;
    let line = format!("delete the pods of {OLD} as well: {said}");
    script.line(&line).await?;
    let said = rogue.create(before).await?;
    let line = format!("create {before} more pods: {said}");
    script.line(&line).await?;
    let is_untouched = script.look(Writes::of) == writes;
    let what = "the agent did none of it";
    script.check(is_untouched, what).await?;

    let intro = format!(
        "Then someone types 0 for {PODS}, so that pods of {NEW} may go. The agent deletes at most \
         {DELETES_MAX} of a ReplicaSet in a minute:"
    );
    script.line(&intro).await?;
    script.scale(NEW, 0).await?;
    let is_scaled = |event: &Event| match event {
        Event::ReplicaSetApplied(set) => set.name == NEW && set.replicas == Some(0),
        Event::PodApplied(_) | Event::Deleted(_) | Event::Bookmark(_) => false,
    };
    rogue.sees(is_scaled).await?;
    let said = rogue.delete(&own).await?;
    script.line(&format!("{all}: {said}")).await?;
    drop(rogue);
    let left = script.count(NEW);
    let what = format!("{left} of {before} pods are left, and none goes");
    let is_held = left + usize::try_from(DELETES_MAX).unwrap_or(0) == before;
    script.check(is_held, &what).await?;
    recover(script, before).await
}

/// Starts the right server again, corrects the number, and resumes the agent.
async fn recover(script: &mut Script<'_, '_>, before: usize) -> Result<(), Failure> {
    let back = "The rogue server is gone, and the right one is back. It waits for the next list:";
    script.line(back).await?;
    script.sandbox.start_server().await?;
    script.synced().await?;
    script.explain(NEW, "Held back:").await?;
    let corrected = "Someone corrects it, and lets the agent delete again:";
    script.line(corrected).await?;
    script.scale(NEW, PODS).await?;
    let agent = script.sandbox.running.agent_admin;
    let agent = agent.map_or_else(String::new, |at| format!("http://{at}"));
    let words = format!("resume {NAMESPACE}/{NEW} --agent {agent}");
    script.command(&words).await?;
    let asked = ResumeRequest {
        namespace: Some(NAMESPACE.to_owned()),
        name: Some(NEW.to_owned()),
    };
    resume::of_agent(&agent, &asked, PATIENCE).await?;
    script.settle().await?;
    let pods = script.count(NEW);
    let what = format!("all {pods} pods are ready again");
    script.check(pods == before, &what).await
}

/// A refusal of the cluster is explained in the words of the cluster.
async fn meet_quota(script: &mut Script<'_, '_>) -> Result<(), Failure> {
    const MORE: i32 = 4;
    script.part("Explain what a quota refuses").await?;
    let pods = script.count(OLD) + script.count(NEW);
    let room = u32::try_from(pods).unwrap_or(u32::MAX).saturating_add(2);
    script.quota(room).await?;
    script.scale(NEW, PODS + MORE).await?;
    let said = script.explain(NEW, "Refused:").await?;
    let names_it = said.contains("exceeded quota");
    let what = "the explanation has the words of the cluster";
    script.check(names_it, what).await?;
    script.quota(room + 100).await?;
    // A change of the ReplicaSet ends its wait. Without the change, the server would retry too, but later and later.
    script.scale(NEW, PODS + MORE + 1).await?;
    script.settle().await?;
    let pods = script.count(NEW);
    let what = format!("{pods} pods are ready");
    let is_scaled = pods == usize::try_from(PODS + MORE + 1).unwrap_or(0);
    script.check(is_scaled, &what).await
}

/// A shadow-mode agent finds what another controller did wrong, and writes nothing.
async fn compare(script: &mut Script<'_, '_>, shadowed: (Sandbox, Asking)) -> Result<(), Failure> {
    script.part("Compare with another controller").await?;
    let intro = format!(
        "Meanwhile an agent in shadow mode watched a second cluster. Its controller \
         scaled {OLD} from 7 to 8, and made a pod twice."
    );
    script.line(&intro).await?;
    let found = shadowed::found(shadowed, script.deadline).await?;
    let (answer, has_written_nothing) = found.ok_or_else(|| script.too_late())?;
    script.command("diff").await?;
    let mut report = Vec::new();
    // The lines of a part are indented.
    let columns = page::columns(script.io).saturating_sub(2);
    diff::report(&answer, columns, &mut report)?;
    for line in String::from_utf8_lossy(&report).lines() {
        script.line(line).await?;
    }
    let is_found = !answer.differences.is_empty();
    script.check(is_found, "the difference is reported").await?;
    let what = "the agent in shadow mode wrote nothing";
    script.check(has_written_nothing, what).await
}

//! `decree explain --why POD`: why a pod was deleted, or its place in the order of deletion.
//!
//! The order comes from the request of `decree simulate`. Scaled to 0, all pods are victims; scaled to 1, all but the last of the
//! order. At the place of the pod, the rules distinguish it from the pods before it.

use std::collections::BTreeSet;

use decree::v1;
use serde_json::{Value, json};
use server_core::wording::count;

use super::scale_down;
use crate::{
    age,
    args::{ExplainArgs, Named},
    decision::{self, word},
    exit::{Exit, Failure},
    format::Format,
    page::Page,
    record,
    source::{RECORDS, Source},
    stale,
    streams::Io,
    table::{Table, one_line},
};

/// The pod that is asked about, and the format of the answer.
struct Asked<'a> {
    named: &'a Named,
    pod: &'a str,
    output: Format,
}

/// The pods of a ReplicaSet in the order of deletion, and what happens to one of them, or happened.
#[derive(Default)]
struct Ladder<'a> {
    /// The answer in one or two sentences.
    answer: String,
    rungs: Vec<Rung>,
    /// The line between the pods that go and the pods that stay.
    cut: String,
    /// The number of pods that are not named.
    beyond: usize,
    /// The assumed replicas, if the pod still exists.
    replicas: Option<i32>,
    /// The time and the number of the decision that deleted the pod.
    decision: Option<(Option<prost_types::Timestamp>, u64)>,
    /// The deletion, if the pods and the values that the rules compared are known.
    scale_down: Option<&'a v1::ScaleDown>,
}

/// A pod, and why it precedes the first pod that stays, or the pod that is asked about.
struct Rung {
    name: String,
    goes: bool,
    reason: Option<v1::Reason>,
}

pub(super) async fn run(
    source: &Source,
    args: &ExplainArgs,
    named: &Named,
    pod: &str,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let output = args.print.output;
    let asked = Asked { named, pod, output };
    let Some(state) = source.state(named).await? else {
        return Err(source.missing(std::slice::from_ref(named)).await);
    };
    stale::notice(&state.stale_view, io)?;
    let summary = state.summary.clone().unwrap_or_default();
    let replicas = args.replicas.unwrap_or(summary.replicas);
    let simulate = async |replicas| {
        let assumed = [(named.clone(), Some(replicas))];
        let decisions = source.decisions(&assumed).await?;
        let decision = decisions.into_iter().flatten().next();
        let decision = decision.and_then(|it| it.decision);
        Ok::<_, Failure>(decision.unwrap_or_default())
    };
    let active = usize::try_from(summary.active).unwrap_or(0);
    let order = order(&simulate(0).await?, &simulate(1).await?, active);
    let active = active.max(order.len());
    let beyond = active - order.len();
    let Some(at) = order.iter().position(|name| name == pod) else {
        let past = Ladder::of_past(&asked, &state);
        let past = past.ok_or_else(|| match source {
            Source::Server { .. } => unknown(&asked, &state, beyond),
            Source::Snapshot { .. } => {
                let cause = format!("no active pod {pod} in {}", named.path());
                let failure = Failure::new(Exit::No, cause);
                failure.hint(format!("a server knows deleted pods; {RECORDS}"))
            }
        })?;
        return past.print(&asked, io);
    };
    let cut = active.saturating_sub(usize::try_from(replicas).unwrap_or(0));
    let border = active - cut.max(at).min(active);
    let decision = simulate(i32::try_from(border).unwrap_or(i32::MAX)).await?;
    let mut reasons = victims(&decision).map(|(_, reason)| reason);
    let rungs = order.into_iter().enumerate().map(|(at, name)| Rung {
        name,
        goes: at < cut,
        reason: reasons.next(),
    });
    let rungs: Vec<_> = rungs.collect();
    let ladder = Ladder {
        answer: answer(named, replicas, active, at, &rungs),
        cut: format!("{cut} above go, {} below stay", active.saturating_sub(cut)),
        rungs,
        beyond,
        replicas: Some(replicas),
        ..Ladder::default()
    };
    ladder.print(&asked, io)
}

/// The answer for a pod that exists, at this place in the order of deletion.
fn answer(named: &Named, replicas: i32, active: usize, at: usize, rungs: &[Rung]) -> String {
    let Rung { name, goes, reason } = &rungs[at];
    let (set, to) = (named.path(), count(replicas, "replica"));
    if *goes {
        let why = why(&reason.clone().unwrap_or_default(), false);
        return format!("{name} is deleted if {set} has {to} of {active} pods: {why}.");
    }
    let (place, stay) = (at + 1, active - at);
    format!(
        "{name} stays if {set} has {to} of {active} pods: it is number {place} in the order of deletion, and stays with {stay} or more replicas."
    )
}

/// The pods in the order of deletion. Scaled to 1, the last of them stays.
fn order(all: &v1::Decision, all_but_one: &v1::Decision, active: usize) -> Vec<String> {
    let mut order: Vec<_> = victims(all_but_one).map(|(name, _)| name).collect();
    let known: BTreeSet<_> = order.iter().cloned().collect();
    let mut rest = victims(all)
        .map(|(name, _)| name)
        .filter(|name| !known.contains(name));
    // If there are more victims than one decision deletes, the other victims have no order.
    if order.len() + 1 >= active {
        order.extend(rest.next());
    }
    order
}

fn victims(decision: &v1::Decision) -> impl Iterator<Item = (String, v1::Reason)> {
    decision.deletes.iter().map(|victim| {
        let name = victim.pod.as_ref().map_or("", |pod| &pod.name);
        (name.to_owned(), victim.reason.clone().unwrap_or_default())
    })
}

impl<'a> Ladder<'a> {
    /// What the decisions that the server knows say about a pod that does not exist now.
    fn of_past(asked: &Asked<'_>, state: &'a v1::GetReplicaSetResponse) -> Option<Self> {
        let names_it = |it: &&v1::DecisionRecord| it.targets.iter().any(|it| it.name == asked.pod);
        match deletes(state).find(names_it) {
            Some(record) => Some(Self::of_record(asked, record)),
            None => Self::of_scale_down(asked, state.last_scale_down.as_ref()?),
        }
    }

    fn of_record(asked: &Asked<'_>, record: &v1::DecisionRecord) -> Self {
        let rungs = record.targets.iter().map(|target| Rung {
            name: target.name.clone(),
            goes: true,
            reason: Some(target.reason.clone().unwrap_or_default()),
        });
        let rungs: Vec<_> = rungs.collect();
        let reason = rungs.iter().find(|it| it.name == asked.pod);
        let reason = reason.and_then(|it| it.reason.as_ref());
        let because = record.reasons.first();
        Self {
            answer: format!(
                "{} was deleted at {}: {}. {} had {}.",
                asked.pod,
                age::time_text(record.time.as_ref()),
                reason.map_or_else(String::new, |it| why(it, asked.output.is_wide())),
                asked.named.path(),
                because.map_or("", |because| because.detail.as_str()),
            ),
            rungs,
            cut: format!("{} above went, the others stayed", record.operations),
            beyond: record::unnamed(record),
            decision: Some((record.time, record.batch_id)),
            ..Self::default()
        }
    }

    /// The deletion of a pod that no known decision names.
    fn of_scale_down(asked: &Asked<'_>, last: &'a v1::ScaleDown) -> Option<Self> {
        let chosen = last.pods.iter().filter(|it| it.chosen);
        let reason = &chosen.clone().find(|it| it.name == asked.pod)?.reason;
        let because = |it| format!(": {}", why(it, asked.output.is_wide()));
        let rungs = last.pods.iter().map(|it| Rung {
            name: it.name.clone(),
            goes: it.chosen,
            reason: it.reason.clone(),
        });
        Some(Self {
            answer: format!(
                "{} was deleted at {}{}. {} had {} active pods, {} desired.",
                asked.pod,
                age::time_text(last.time.as_ref()),
                reason.as_ref().map_or_else(String::new, because),
                asked.named.path(),
                last.from,
                last.to,
            ),
            rungs: rungs.collect(),
            beyond: usize::try_from(last.chosen)
                .unwrap_or(0)
                .saturating_sub(chosen.count()),
            decision: Some((last.time, last.batch_id)),
            scale_down: Some(last),
            ..Self::default()
        })
    }

    fn print(&self, asked: &Asked<'_>, io: &mut Io<'_>) -> Result<Exit, Failure> {
        let Asked { named, pod, output } = *asked;
        if !output.is_for_people() {
            output.write(io.stdout, &self.json(named, pod), &[&named.name])?;
            return Ok(Exit::Done);
        }
        let page = Page::new(io);
        page.write_hanging(io.stdout, 0, &one_line(&self.answer), 0)?;
        writeln!(io.stdout)?;
        match self.scale_down {
            Some(last) => {
                scale_down::table(last, pod, output.is_wide(), page).write(io.stdout, 2)?;
            }
            None => self
                .table(pod, output.is_wide(), page)
                .write(io.stdout, 0)?,
        }
        Ok(Exit::Done)
    }

    fn table(&self, pod: &str, is_wide: bool, page: Page) -> Table {
        let mut table = Table::new(page, ["  ORDER", "POD", "RULE"]);
        let cut = format!("  ------- {} -------", self.cut);
        let unnamed = (self.beyond > 0).then(|| format!("  and {} more", self.beyond));
        let has_cut = self.decision.is_none();
        let going = self.rungs.iter().filter(|it| it.goes).count();
        for (at, Rung { name, reason, .. }) in self.rungs.iter().enumerate() {
            if has_cut && at == going {
                table.line(&cut);
            }
            let mark = if name == pod { '>' } else { ' ' };
            let reason = reason.as_ref().map(|reason| why(reason, is_wide));
            let order = format!("{mark} {}", at + 1);
            table.row([order, name.clone(), reason.unwrap_or_default()]);
        }
        if has_cut && going == self.rungs.len() {
            table.line(&cut);
        }
        match unnamed {
            Some(it) if has_cut => table.line(&(it + ", which one decision does not reach")),
            Some(it) => table.line(&it),
            None => {}
        }
        if !has_cut {
            table.line(&cut);
        }
        table
    }

    fn json(&self, named: &Named, pod: &str) -> Value {
        let pods = self.rungs.iter().enumerate().map(|(at, rung)| {
            let reason = rung.reason.as_ref();
            let reason = reason.map(|it| json!({"rule": word(it.rule()), "detail": it.detail}));
            json!({"order": at + 1, "name": rung.name, "goes": rung.goes, "reason": reason})
        });
        let decision = self
            .decision
            .as_ref()
            .map(|(time, batch)| json!({"time": age::time_text(time.as_ref()), "batchId": batch}));
        json!({
            "replicaSet": named.path(),
            "pod": pod,
            "replicas": self.replicas,
            "goes": self.rungs.iter().any(|it| it.goes && it.name == pod),
            "pods": pods.collect::<Vec<_>>(),
            "beyond": self.beyond,
            "decision": decision,
        })
    }
}

fn deletes(state: &v1::GetReplicaSetResponse) -> impl Iterator<Item = &v1::DecisionRecord> {
    let decisions = state.decisions.iter();
    decisions.filter(|record| record.action == "delete")
}

fn why(reason: &v1::Reason, is_wide: bool) -> String {
    let detail = decision::detail_for(reason.rule(), reason.detail.clone(), is_wide);
    format!("{}: {detail}", word(reason.rule()))
}

fn unknown(asked: &Asked<'_>, state: &v1::GetReplicaSetResponse, beyond: usize) -> Failure {
    let past = match (deletes(state).count(), &state.last_scale_down) {
        (0, None) => "none was deleted in this session".to_owned(),
        (_, Some(last)) if last.pods.is_empty() => {
            "the server has dropped the pods of the last deletion".to_owned()
        }
        (0 | 1, _) => "the last deletion does not name it".to_owned(),
        (count, _) => format!("the {count} deletions that the server knows do not name it"),
    };
    let (pod, set) = (asked.pod, asked.named.path());
    let what = match beyond {
        0 => format!("no active pod {pod} in {set}"),
        _ => format!("{pod} is not among the first pods of {set} in the order of deletion"),
    };
    let cause = format!("{what}, and {past}");
    Failure::new(Exit::No, cause)
        .hint("its log has every decision at level debug, and --record keeps them")
}

//! `decree explain --why POD`: why a pod was deleted, or its place in the order of deletion.
//!
//! The order comes from the request of `decree simulate`. Scaled to 0, all pods are victims; scaled to 1, all but the last of the
//! order. At the place of the pod, the rules distinguish it from the pods before it.

use std::collections::BTreeSet;

use decree::v1;
use serde_json::{Value, json};

use super::{ask::ask, scale_down};
use crate::{
    age,
    args::{ExplainArgs, Named},
    decision::{self, word},
    exit::{Exit, Failure},
    record,
    server::Server,
    simulate,
    streams::Io,
    table::one_line,
};

/// The pods of a ReplicaSet in the order of deletion, and the place of one of them.
struct Ladder<'a> {
    set: String,
    pod: &'a str,
    /// The place of the pod, from 1.
    place: usize,
    /// The number of victims, and the replicas after their deletion.
    cut: usize,
    replicas: i32,
    pods: Vec<String>,
    /// Why each of the first pods precedes the first pod that stays, or the pod that is asked about.
    reasons: Vec<v1::Reason>,
    /// The number of pods beyond the maximum of one decision, in no order.
    beyond: usize,
}

pub(super) async fn run(
    server: &Server,
    args: &ExplainArgs,
    named: &Named,
    pod: &str,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let state = ask(server, args, named).await?;
    let summary = state.summary.clone().unwrap_or_default();
    let replicas = args.replicas.unwrap_or(summary.replicas);
    let cluster = &args.inspection.cluster;
    let simulate = async |replicas| {
        let decision = simulate::ask(server, cluster, named.clone(), Some(replicas)).await?;
        Ok::<_, Failure>(decision.unwrap_or_default())
    };
    let active = usize::try_from(summary.active).unwrap_or(0);
    let order = order(&simulate(0).await?, &simulate(1).await?, active);
    let active = active.max(order.len());
    let beyond = active - order.len();
    let Some(at) = order.iter().position(|name| name == pod) else {
        return write_past(args, named, pod, &state, beyond, io);
    };
    let wanted = usize::try_from(replicas).unwrap_or(0);
    let cut = active.saturating_sub(wanted);
    let border = active - cut.max(at).min(active);
    let reasons = victims(&simulate(i32::try_from(border).unwrap_or(i32::MAX)).await?)
        .map(|(_, reason)| reason)
        .collect();
    let ladder = Ladder {
        set: named.path(),
        pod,
        place: at + 1,
        cut,
        replicas,
        pods: order,
        reasons,
        beyond,
    };
    ladder.print(args, io)?;
    Ok(Exit::Done)
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

// === impl Ladder ===

impl Ladder<'_> {
    fn print(&self, args: &ExplainArgs, io: &mut Io<'_>) -> Result<(), Failure> {
        let output = &args.print.output;
        if !output.is_for_people() {
            let name = self.set.rsplit('/').next().unwrap_or_default();
            return output.write(io.stdout, &self.json(), &[name]);
        }
        writeln!(io.stdout, "{}\n", one_line(&self.answer()))?;
        let width = width(self.pods.iter().map(String::as_str));
        writeln!(io.stdout, "  ORDER   {:<width$}   RULE", "POD")?;
        for (at, pod) in self.pods.iter().enumerate() {
            if at == self.cut {
                self.print_cut(io)?;
            }
            let mark = if pod == self.pod { '>' } else { ' ' };
            let reason = self.reasons.get(at);
            let reason = reason.map_or_else(String::new, |reason| why(reason, output.is_wide()));
            let line = format!("{mark} {:<5}   {pod:<width$}   {reason}", at + 1);
            writeln!(io.stdout, "{}", one_line(line.trim_end()))?;
        }
        if self.cut >= self.pods.len() {
            self.print_cut(io)?;
        }
        if self.beyond > 0 {
            writeln!(
                io.stdout,
                "  and {} more, which one decision does not reach",
                self.beyond
            )?;
        }
        Ok(())
    }

    fn print_cut(&self, io: &mut Io<'_>) -> Result<(), Failure> {
        let stay = self.pods.len().saturating_sub(self.cut) + self.beyond;
        writeln!(
            io.stdout,
            "  ------- {} above go, {stay} below stay -------",
            self.cut
        )?;
        Ok(())
    }

    /// The answer in one or two sentences.
    fn answer(&self) -> String {
        let Self {
            set,
            pod,
            place,
            cut,
            replicas,
            ..
        } = self;
        let count = self.pods.len() + self.beyond;
        let to = match replicas {
            1 => "1 replica".to_owned(),
            replicas => format!("{replicas} replicas"),
        };
        if place <= cut {
            let reason = self.reasons.get(place - 1).cloned().unwrap_or_default();
            let why = why(&reason, false);
            return format!("{pod} goes if {set} is to have {to} of {count} pods: {why}.");
        }
        let stay = count - place + 1;
        format!(
            "{pod} stays if {set} is to have {to} of {count} pods: it is number {place} to go, so it stays as long as {stay} or more are wanted."
        )
    }

    fn json(&self) -> Value {
        let pods = self
            .pods
            .iter()
            .enumerate()
            .map(|(at, pod)| pod_to_json(at, pod, at < self.cut, self.reasons.get(at)));
        json!({
            "replicaSet": self.set,
            "pod": self.pod,
            "replicas": self.replicas,
            "goes": self.place <= self.cut,
            "pods": pods.collect::<Vec<_>>(),
            "beyond": self.beyond,
            "decision": null,
        })
    }
}

fn why(reason: &v1::Reason, is_wide: bool) -> String {
    let detail = decision::detail_for(reason.rule(), reason.detail.clone(), is_wide);
    format!("{}: {detail}", word(reason.rule()))
}

/// Writes what the decisions that the server knows say about a pod that does not exist now.
fn write_past(
    args: &ExplainArgs,
    named: &Named,
    pod: &str,
    state: &v1::GetReplicaSetResponse,
    beyond: usize,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let is_its = |target: &&v1::DecisionTarget| target.name == pod;
    let decisions = state.decisions.iter();
    let mut deletes = decisions.filter(|record| record.action == "delete");
    let count = deletes.clone().count();
    let record = deletes.find(|record| record.targets.iter().any(|it| is_its(&it)));
    let last = state.last_scale_down.as_ref();
    let chosen = last.filter(|last| last.pods.iter().any(|it| it.chosen && it.name == pod));
    let output = &args.print.output;
    let set = named.path();
    match (record, chosen) {
        (Some(record), _) if output.is_for_people() => {
            write_deletion(&set, pod, record, output.is_wide(), io)?;
        }
        (Some(record), _) => {
            let json = deletion_to_json(&set, pod, record);
            output.write(io.stdout, &json, &[&named.name])?;
        }
        (None, Some(last)) if output.is_for_people() => {
            write_scale_down(&set, pod, last, output.is_wide(), io)?;
        }
        (None, Some(last)) => {
            let json = scale_down_to_json(&set, pod, last);
            output.write(io.stdout, &json, &[&named.name])?;
        }
        (None, None) => return Err(unknown(named, pod, (count, last), beyond)),
    }
    Ok(Exit::Done)
}

/// Writes why a pod of the last deletion was chosen, if no known decision names the pod.
fn write_scale_down(
    set: &str,
    pod: &str,
    last: &v1::ScaleDown,
    is_wide: bool,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let time = age::time_text(last.time.as_ref());
    let (from, to) = (last.from, last.to);
    let reason = last.pods.iter().find(|it| it.name == pod);
    let because = match reason.and_then(|it| it.reason.as_ref()) {
        Some(reason) => format!(": {}", why(reason, is_wide)),
        None => String::new(),
    };
    let said =
        format!("{pod} was deleted at {time}{because}. {set} had {from} active pods, {to} wanted.");
    writeln!(io.stdout, "{}\n", one_line(&said))?;
    Ok(scale_down::table(last, pod, is_wide).write(io.stdout, "  ")?)
}

fn scale_down_to_json(set: &str, pod: &str, last: &v1::ScaleDown) -> Value {
    let pods = last.pods.iter().enumerate();
    let pods = pods.map(|(at, it)| pod_to_json(at, &it.name, it.chosen, it.reason.as_ref()));
    let chosen = last.pods.iter().filter(|it| it.chosen).count();
    let beyond = usize::try_from(last.chosen).unwrap_or(0);
    let decision = (last.time.as_ref(), last.batch_id);
    past_to_json((set, pod), pods, beyond.saturating_sub(chosen), decision)
}

fn write_deletion(
    set: &str,
    pod: &str,
    record: &v1::DecisionRecord,
    is_wide: bool,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let reason_of =
        |target: &v1::DecisionTarget| why(&target.reason.clone().unwrap_or_default(), is_wide);
    let target = record.targets.iter().find(|target| target.name == pod);
    let because = record.reasons.first();
    let because = because.map_or("", |because| because.detail.as_str());
    let said = format!(
        "{pod} was deleted at {}: {}. {set} had {because}.",
        age::time_text(record.time.as_ref()),
        target.map_or_else(String::new, reason_of),
    );
    writeln!(io.stdout, "{}\n", one_line(&said))?;
    let names = record.targets.iter().map(|target| target.name.as_str());
    let width = width(names.clone());
    writeln!(io.stdout, "  ORDER   {:<width$}   RULE", "POD")?;
    for (at, target) in record.targets.iter().enumerate() {
        let mark = if target.name == pod { '>' } else { ' ' };
        let (number, name) = (at + 1, &target.name);
        let line = format!(
            "{mark} {number:<5}   {name:<width$}   {}",
            reason_of(target)
        );
        writeln!(io.stdout, "{}", one_line(line.trim_end()))?;
    }
    if record::unnamed(record) > 0 {
        writeln!(io.stdout, "  and {} more", record::unnamed(record))?;
    }
    let count = record.operations;
    writeln!(
        io.stdout,
        "  ------- {count} above went, the others stayed -------"
    )?;
    Ok(())
}

fn deletion_to_json(set: &str, pod: &str, record: &v1::DecisionRecord) -> Value {
    let pods = record.targets.iter().enumerate().map(|(at, target)| {
        let reason = target.reason.clone().unwrap_or_default();
        pod_to_json(at, &target.name, true, Some(&reason))
    });
    let decision = (record.time.as_ref(), record.batch_id);
    past_to_json((set, pod), pods, record::unnamed(record), decision)
}

fn pod_to_json(at: usize, name: &str, goes: bool, reason: Option<&v1::Reason>) -> Value {
    let reason = reason.map(|it| json!({"rule": word(it.rule()), "detail": it.detail}));
    json!({"order": at + 1, "name": name, "goes": goes, "reason": reason})
}

fn past_to_json(
    (set, pod): (&str, &str),
    pods: impl Iterator<Item = Value>,
    beyond: usize,
    (time, batch_id): (Option<&prost_types::Timestamp>, u64),
) -> Value {
    json!({
        "replicaSet": set,
        "pod": pod,
        "replicas": null,
        "goes": true,
        "pods": pods.collect::<Vec<_>>(),
        "beyond": beyond,
        "decision": {"time": age::time_text(time), "batchId": batch_id},
    })
}

/// The width of a column of names.
fn width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let width = names.map(|name| name.chars().count()).max();
    width.unwrap_or(0).max("POD".len())
}

fn unknown(
    named: &Named,
    pod: &str,
    (deletes, last): (usize, Option<&v1::ScaleDown>),
    beyond: usize,
) -> Failure {
    let past = match (deletes, last) {
        (0, None) => "the server knows of no deletion in this session".to_owned(),
        (_, Some(last)) if last.pods.is_empty() => {
            "the pods of the last deletion are not known any more".to_owned()
        }
        (0 | 1, _) => "the last deletion does not name it".to_owned(),
        (count, _) => format!("the {count} deletions that the server knows do not name it"),
    };
    let what = match beyond {
        0 => "is no active pod",
        _ => "is not among the first pods to go",
    };
    let cause = format!("{pod} {what} of {}, and {past}", named.path());
    Failure::new(Exit::No, cause)
        .hint("its log has every decision at level debug, and --record keeps them")
}

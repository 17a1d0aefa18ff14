//! Deletions that the server remembers: the last one, with the pods on both sides of the cut and the values that each rule compares, and with
//! `--why` that of a pod.

use std::io::{self, Write};

use decree_api::v1::{self, Rule};
use decree_core::wording::count;
use jiff::Timestamp;

use crate::{
    age,
    args::{ExplainArgs, Named},
    decision::{self, word},
    exit::{Exit, Failure},
    format,
    page::{Io, Page, one_line},
    source::{RECORDS, Source},
    table::Table,
};

/// Writes the deletion of a pod, as far as the state of its ReplicaSet tells it.
pub(super) fn write(
    source: &Source,
    args: &ExplainArgs,
    (named, pod): (&Named, &str),
    state: v1::GetReplicaSetResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let (output, set) = (args.print.output, named.path());
    let is_its = |it: &v1::RankedPod| it.chosen && it.name == pod;
    let last = state.last_scale_down;
    let last = last.filter(|last| last.pods.iter().any(is_its));
    let deletes = state.decisions.into_iter();
    let mut deletes = deletes.filter(|record| record.action() == v1::Action::Delete);
    let record = deletes.find(|record| record.targets.iter().any(|it| it.name == pod));
    if !output.is_for_people() && (last.is_some() || record.is_some()) {
        let answer = v1::GetReplicaSetResponse {
            summary: state.summary,
            decisions: record.into_iter().collect(),
            last_scale_down: last,
            ..v1::GetReplicaSetResponse::default()
        };
        let json = format::proto_json("GetReplicaSetResponse", &answer)?;
        return output.write(io.stdout, &json, &[&named.name]);
    }
    let (page, is_wide) = (Page::new(io), output.is_wide());
    let (time, pods) = if let Some(last) = &last {
        let pods = format!("{} active pods, {} desired", last.previous, last.desired);
        (&last.decide_time, pods)
    } else if let Some(record) = &record {
        let pods = record.reasons.first().map(|it| it.detail.clone());
        (&record.decide_time, pods.unwrap_or_default())
    } else {
        return Err(unknown(source, &set, pod));
    };
    // A decision has the rule between a pod and those that stay, and the last scale-down the one between it and the next pod.
    let mut targets = record.iter().flat_map(|it| &it.targets);
    let target = targets.find(|it| it.name == pod);
    let mut ranked = last.iter().flat_map(|it| &it.pods);
    let ranked = ranked.find(|it| is_its(it));
    let reason = target.and_then(|it| it.reason.as_ref());
    let reason = reason.or_else(|| ranked?.reason.as_ref());
    let why = reason.map_or_else(String::new, |it| {
        format!(": {}", decision::reason_for(it, is_wide))
    });
    let time = age::time_text(time.as_ref());
    let answer = format!("{pod} was deleted at {time}{why}. {set} had {pods}.");
    page.write_hanging(io.stdout, 0, &one_line(&answer), 0)?;
    if let Some(last) = &last {
        writeln!(io.stdout)?;
        table(last, pod, is_wide, page).write(io.stdout, 2)?;
    }
    Ok(())
}

fn unknown(source: &Source, set: &str, pod: &str) -> Failure {
    let place = format!("its place in the order of deletion: decree simulate {set} --replicas 0");
    if source.is_snapshot() {
        let cause = format!("only a server remembers why {pod} of {set} was deleted");
        return Failure::new(Exit::No, cause).hint(format!("{RECORDS}; {place}"));
    }
    let cause = format!("no decision that the server remembers deletes {pod} of {set}");
    Failure::new(Exit::No, cause).hint(place)
}

/// Writes the time, the number of victims, and the rules that chose them.
pub(super) fn write_last(
    last: &v1::ScaleDown,
    is_wide: bool,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let v1::ScaleDown {
        previous, desired, ..
    } = last;
    let time = last.decide_time.as_ref();
    let (at, ago) = (age::time_text(time), age::ago(time, Timestamp::now()));
    let pods = count(last.chosen, "pod");
    let title = format!("Last scale-down: {previous} → {desired} at {at} ({ago}), {pods}");
    page.write(out, 0, &one_line(&title))?;
    if !last.costs.is_empty() {
        page.write(out, 2, &one_line(&last.costs))?;
    }
    table(last, "", is_wide, page).write(out, 2)
}

/// The pods as a table, with a mark on the row of the pod `asked`.
fn table(last: &v1::ScaleDown, asked: &str, is_wide: bool, page: Page) -> Table {
    let rules = rules(last, is_wide);
    let mut headers = vec!["POD", "CHOSEN", "BEFORE-NEXT-BY"];
    headers.extend(rules.iter().map(|rule| word(*rule)));
    let mut table = Table::new(page, headers);
    for pod in &last.pods {
        let mark = if pod.name == asked { "> " } else { "" };
        let chosen = if pod.chosen { "yes" } else { "stays" };
        let by = pod.reason.as_ref().map_or("-", |it| word(it.rule()));
        let mut cells = vec![
            format!("{mark}{}", pod.name),
            chosen.to_owned(),
            by.to_owned(),
        ];
        cells.extend(rules.iter().map(|rule| value(pod, *rule).to_owned()));
        table.row(cells);
    }
    table
}

/// The rules that distinguish these pods; all rules if `is_wide`.
fn rules(last: &v1::ScaleDown, is_wide: bool) -> Vec<Rule> {
    let Some(first) = last.pods.first() else {
        return Vec::new();
    };
    let all = first.values.iter().map(v1::RankValue::rule);
    let tells = |rule: &Rule| {
        let mut values = last.pods.iter().map(|pod| value(pod, *rule));
        *rule != Rule::Uid && values.any(|other| other != value(first, *rule))
    };
    all.filter(|rule| is_wide || tells(rule)).collect()
}

fn value(pod: &v1::RankedPod, rule: Rule) -> &str {
    let mut values = pod.values.iter();
    values
        .find(|it| it.rule() == rule)
        .map_or("-", |it| &it.value)
}

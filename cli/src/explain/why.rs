//! `decree explain --why POD`: the remembered decision that deleted a pod.

use decree::v1;

use super::scale_down;
use crate::{
    age,
    args::{ExplainArgs, Named},
    decision::{self, word},
    exit::{Exit, Failure},
    page::Page,
    proto_json, record,
    source::{RECORDS, Source},
    streams::Io,
    table::{Table, one_line},
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
    let mut deletes = deletes.filter(|record| record.action == "delete");
    let record = deletes.find(|record| record.targets.iter().any(|it| it.name == pod));
    if !output.is_for_people() && (last.is_some() || record.is_some()) {
        let answer = v1::GetReplicaSetResponse {
            summary: state.summary,
            decisions: record.into_iter().collect(),
            last_scale_down: last,
            ..v1::GetReplicaSetResponse::default()
        };
        let json = proto_json::value("GetReplicaSetResponse", &answer)?;
        return output.write(io.stdout, &json, &[&named.name]);
    }
    let (page, is_wide) = (Page::new(io), output.is_wide());
    let (time, reason, pods, table) = if let Some(last) = &last {
        let reason = last.pods.iter().find(|it| is_its(it));
        let reason = reason.and_then(|it| it.reason.as_ref());
        let pods = format!("{} active pods, {} desired", last.from, last.to);
        let table = scale_down::table(last, pod, is_wide, page);
        (&last.time, reason, pods, table)
    } else if let Some(record) = &record {
        let reason = record.targets.iter().find(|it| it.name == pod);
        let reason = reason.and_then(|it| it.reason.as_ref());
        let pods = record.reasons.first().map(|it| it.detail.clone());
        let table = victims(record, pod, is_wide, page);
        (&record.time, reason, pods.unwrap_or_default(), table)
    } else {
        return Err(unknown(source, &set, pod));
    };
    let why = reason.map_or_else(String::new, |it| format!(": {}", why(it, is_wide)));
    let time = age::time_text(time.as_ref());
    let answer = format!("{pod} was deleted at {time}{why}. {set} had {pods}.");
    page.write_hanging(io.stdout, 0, &one_line(&answer), 0)?;
    writeln!(io.stdout)?;
    Ok(table.write(io.stdout, 2)?)
}

/// The pods that a decision names, in the order of deletion, with a mark on the row of the pod `asked`.
fn victims(record: &v1::DecisionRecord, asked: &str, is_wide: bool, page: Page) -> Table {
    let mut table = Table::new(page, ["POD", "RULE"]);
    for target in &record.targets {
        let mark = if target.name == asked { "> " } else { "" };
        let reason = target.reason.as_ref().map(|it| why(it, is_wide));
        table.row([format!("{mark}{}", target.name), reason.unwrap_or_default()]);
    }
    let more = record::unnamed(record);
    if more > 0 {
        table.line(&format!("and {more} more"));
    }
    table
}

fn why(reason: &v1::Reason, is_wide: bool) -> String {
    let detail = decision::detail_for(reason.rule(), reason.detail.clone(), is_wide);
    format!("{}: {detail}", word(reason.rule()))
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

//! The last deletion of surplus pods: the pods on both sides of the cut, with the values that each rule compares.

use std::io::{self, Write};

use decree::v1::{self, Rule};
use jiff::Timestamp;
use server_core::wording::count;

use crate::{
    age,
    decision::word,
    page::Page,
    table::{Table, one_line},
};

/// Writes the time, the number of victims, and the rules that chose them.
pub(super) fn write(
    last: &v1::ScaleDown,
    is_wide: bool,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let v1::ScaleDown { from, to, .. } = last;
    let time = last.time.as_ref();
    let (at, ago) = (age::time_text(time), age::ago(time, Timestamp::now()));
    let pods = count(last.chosen, "pod");
    let title = format!("Last scale-down: {from} → {to} at {at} ({ago}), {pods}");
    page.write(out, 0, &one_line(&title))?;
    table(last, "", is_wide, page).write(out, 2)
}

/// The pods as a table, with a mark on the row of the pod `asked`.
pub(super) fn table(last: &v1::ScaleDown, asked: &str, is_wide: bool, page: Page) -> Table {
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

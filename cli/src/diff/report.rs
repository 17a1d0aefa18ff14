//! The comparison and its differences, for people.

use std::io::{self, Write};

use decree::v1::{self, Difference};

use super::words;
use crate::{
    age, decision,
    page::{self, Page},
    table::{Table, one_line},
};

/// Writes the comparison, and each difference with its reason, the unexplained ones first.
pub(crate) fn report(
    answer: &v1::ListDifferencesResponse,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    page::write(&verdict(answer), page.text_columns(), out)?;
    agreement(answer, page, out)?;
    let (unexplained, explained) = words::parts(answer);
    let parts = [("Unexplained", unexplained), ("Explained", explained)];
    for (title, differences) in parts {
        if differences.is_empty() {
            continue;
        }
        writeln!(out, "\n{title}: {}", differences.len())?;
        for difference in differences {
            write_difference(difference, page, out)?;
        }
    }
    Ok(())
}

fn verdict(answer: &v1::ListDifferencesResponse) -> String {
    let agents = match answer.shadows {
        1 => String::new(),
        shadows => format!(", by {shadows} agents"),
    };
    let verdict = words::verdict(answer);
    match answer.compared {
        0 => format!("Nothing to compare yet{agents}: {verdict}."),
        _ => format!("{verdict}{agents}."),
    }
}

fn write_difference(difference: &Difference, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let columns = page.text_columns();
    let title = format!(
        "  {}  {}  {}",
        one_line(&decision::path(difference.replica_set.as_ref())),
        words::subject(difference.subject()),
        age::time_text(difference.time.as_ref())
    );
    writeln!(out)?;
    page::write(&title, columns, out)?;
    let texts = [
        ("decided", &difference.decided),
        ("done", &difference.done),
        ("why", &difference.why),
    ];
    for (label, text) in texts {
        let line = format!("    {label:<7}  {}", one_line(text));
        page::write(&line, columns, out)?;
    }
    let mut table = Table::new(page, ["DECIDED HERE", "DONE THERE"]);
    let (decided, done) = (&difference.decided_pods, &difference.done_pods);
    let pod = |pods: &[String], at: usize| pods.get(at).cloned().unwrap_or_default();
    for at in 0..decided.len().max(done.len()) {
        table.row([pod(decided, at), pod(done, at)]);
    }
    if table.is_empty() {
        return Ok(());
    }
    table.write(out, 4)
}

/// Writes the share of agreement by subject.
fn agreement(
    answer: &v1::ListDifferencesResponse,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let total = words::total(&answer.agreements);
    if total.compared == 0 {
        return Ok(());
    }
    let (share, extent) = (words::share(&total), words::extent(answer));
    let others = match answer.deleted_by_others {
        0 => String::new(),
        pods => format!(" Pods that others deleted: {pods}."),
    };
    let line = format!("{share} agree, of {extent}.{others}");
    page::write(&line, page.text_columns(), out)?;
    writeln!(out)?;
    let headers = [
        "SUBJECT",
        "COMPARED",
        "AGREE",
        "EXPLAINED",
        "UNEXPLAINED",
        "NOT COMPARED",
    ];
    let mut table = Table::new(page, headers);
    for of in &answer.agreements {
        table.row([
            words::subject(of.subject()).to_owned(),
            of.compared.to_string(),
            words::share(of),
            of.explained.to_string(),
            of.unexplained.to_string(),
            of.not_compared.to_string(),
        ]);
    }
    table.write(out, 0)
}

//! The comparison and its differences, for people.

use std::{
    io::{self, Write},
    time::Duration,
};

use decree::v1::{self, Departure, Difference};
use server_core::wording::count;

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
    let (unexplained, explained): (Vec<_>, Vec<_>) =
        answer.differences.iter().partition(|it| is_unexplained(it));
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
    let verdict = counts(answer);
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
        subject(difference.subject()),
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
    let total = total(&answer.agreements);
    if total.compared == 0 {
        return Ok(());
    }
    let (whole, extent) = (share(&total), extent(answer));
    let others = match answer.deleted_by_others {
        0 => String::new(),
        pods => format!(" Pods that others deleted: {pods}."),
    };
    let line = format!("{whole} agree, of {extent}.{others}");
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
            subject(of.subject()).to_owned(),
            of.compared.to_string(),
            share(of),
            of.explained.to_string(),
            of.unexplained.to_string(),
            of.not_compared.to_string(),
        ]);
    }
    table.write(out, 0)
}

/// The word for the explanation of a difference.
pub(super) const fn departure(departure: Departure) -> &'static str {
    match departure {
        Departure::Unspecified => "<none>",
        Departure::OrderOfDeletion => "OrderOfDeletion",
        Departure::ReplicaFailure => "ReplicaFailure",
        Departure::NamespaceEnding => "NamespaceEnding",
        Departure::DeletedByOthers => "DeletedByOthers",
    }
}

pub(super) const fn subject(subject: v1::Subject) -> &'static str {
    match subject {
        v1::Subject::Unspecified => "Unknown",
        v1::Subject::Count => "Count",
        v1::Subject::Victims => "Victims",
        v1::Subject::Status => "Status",
        v1::Subject::Adoption => "Adoption",
    }
}

/// Whether nothing explains a difference.
pub(super) fn is_unexplained(difference: &Difference) -> bool {
    difference.departure() == Departure::Unspecified
}

/// The share of comparisons without a difference, in percent, rounded down: `100 %` only if all agree.
fn share(agreement: &v1::Agreement) -> String {
    let v1::Agreement {
        compared,
        explained,
        unexplained,
        ..
    } = agreement;
    let alike = compared.saturating_sub(explained + unexplained);
    match u128::from(alike) * 10_000 / u128::from((*compared).max(1)) {
        _ if *compared == 0 => "-".to_owned(),
        10_000 => "100 %".to_owned(),
        share => format!("{}.{:02} %", share / 100, share % 100),
    }
}

fn total(agreements: &[v1::Agreement]) -> v1::Agreement {
    let sum = |of: fn(&v1::Agreement) -> u64| agreements.iter().map(of).sum();
    v1::Agreement {
        subject: v1::Subject::Unspecified.into(),
        compared: sum(|it| it.compared),
        explained: sum(|it| it.explained),
        unexplained: sum(|it| it.unexplained),
        not_compared: sum(|it| it.not_compared),
    }
}

/// The result of all comparisons.
fn counts(answer: &v1::ListDifferencesResponse) -> String {
    let v1::Agreement {
        compared,
        explained,
        unexplained,
        not_compared,
        ..
    } = total(&answer.agreements);
    let explained = match explained {
        0 => String::new(),
        explained => format!(", {explained} explained"),
    };
    format!(
        "{compared} compared, {unexplained} unexplained{explained}; {not_compared} not compared"
    )
}

/// The number of compared ReplicaSets, and the duration of the comparison.
fn extent(answer: &v1::ListDifferencesResponse) -> String {
    let sets = count(answer.replica_sets, "ReplicaSet");
    let since = answer.since.as_ref().and_then(age::wire_time);
    let long = since.map(|since| jiff::Timestamp::now().duration_since(since));
    let long = long.and_then(|long| Duration::try_from(long).ok());
    match long {
        Some(long) => format!("{sets}, for {}", age::human(long)),
        None => sets.to_string(),
    }
}

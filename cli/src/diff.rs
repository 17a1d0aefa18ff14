//! `decree diff`: what another controller did differently from the decisions of a server whose agent is in shadow or advise mode.

use std::{
    io::{self, Write},
    time::Duration,
};

use decree_api::v1::{self, Departure, Difference};
use decree_core::wording::count;

use crate::{
    age,
    args::DiffArgs,
    decision,
    exit::{Exit, Failure},
    format,
    page::{Io, Page, one_line},
    pages,
    server::{self, Server},
    source::{self, Source},
    stale,
    table::Table,
};

pub(crate) fn run(args: &DiffArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (scope, mut answer) = server::block_on(async {
        let server = Server::connect(&args.inspection.server).await?;
        let cluster = &args.inspection.cluster;
        let source = Source::of_server(&server, cluster);
        let scope = source::scope(&args.scope, &source).await?;
        let request = v1::ListDifferencesRequest {
            cluster: cluster.clone(),
            namespace: scope.namespace.clone(),
            name: scope.name.clone(),
            ..v1::ListDifferencesRequest::default()
        };
        let answer = pages::differences(&server, request).await?;
        let mut missing = Vec::new();
        for named in &scope.only {
            let mut sets = answer.differences.iter().map(|it| &it.replica_set);
            // One that differs may be gone, and those of several clusters may have the same name.
            if !sets.any(|set| decision::path(set.as_ref()) == named.path())
                && matches!(source.state(named).await, Ok(None))
            {
                missing.push(named.clone());
            }
        }
        source.check_found(&missing, Vec::new()).await?;
        Ok((scope, answer))
    })?;
    if answer.shadows == 0 {
        let cause =
            "no agent in shadow or advise mode is connected, so there is nothing to compare";
        let hint =
            "run server and agent next to the other controller: decree up --cluster kubernetes";
        return Err(Failure::new(Exit::Usage, cause).hint(hint));
    }
    answer
        .differences
        .retain(|it| scope.has(it.replica_set.as_ref()));
    if args.unexplained {
        answer.differences.retain(is_unexplained);
    }
    let exit = stale::notice(&answer.stale_views, io)?;
    print(args, &answer, io)?;
    Ok(if answer.differences.is_empty() {
        exit
    } else {
        Exit::No
    })
}

fn print(
    args: &DiffArgs,
    answer: &v1::ListDifferencesResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let output = args.print.output;
    if !output.is_for_people() {
        let json = format::proto_json("ListDifferencesResponse", answer)?;
        let sets = answer.differences.iter();
        let sets = sets.filter_map(|it| it.replica_set.as_ref());
        let mut names: Vec<_> = sets.map(|set| set.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return output.write(io.stdout, &json, &names);
    }
    Ok(report(answer, Page::new(io), io.stdout)?)
}

/// Writes the comparison, and each difference with its reason, the unexplained ones first.
pub(crate) fn report(
    answer: &v1::ListDifferencesResponse,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    page.text().write(out, 0, &verdict(answer))?;
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
    let total = total(&answer.agreements);
    let agents = match answer.shadows {
        1 => String::new(),
        shadows => format!(", by {shadows} agents"),
    };
    let explained = match total.explained {
        0 => String::new(),
        explained => format!(", {explained} explained"),
    };
    let verdict = format!(
        "{} compared, {} unexplained{explained}; {} not compared",
        total.compared, total.unexplained, total.not_compared
    );
    match answer.compared {
        0 => format!("Nothing to compare yet{agents}: {verdict}."),
        _ => format!("{verdict}{agents}."),
    }
}

fn write_difference(difference: &Difference, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let text = page.text();
    let title = format!(
        "{}  {}  {}",
        one_line(&decision::path(difference.replica_set.as_ref())),
        subject(difference.subject()),
        age::time_text(difference.detect_time.as_ref())
    );
    writeln!(out)?;
    text.write(out, 2, &title)?;
    let texts = [
        ("decided", &difference.decided),
        ("done", &difference.done),
        ("why", &difference.why),
    ];
    for (label, said) in texts {
        let line = format!("{label:<7}  {}", one_line(said));
        text.write(out, 4, &line)?;
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
    page.text().write(out, 0, &line)?;
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

const fn subject(subject: v1::Subject) -> &'static str {
    match subject {
        v1::Subject::Unspecified => "Unknown",
        v1::Subject::Count => "Count",
        v1::Subject::Victims => "Victims",
        v1::Subject::Status => "Status",
        v1::Subject::Adoption => "Adoption",
    }
}

/// Whether nothing explains a difference.
fn is_unexplained(difference: &Difference) -> bool {
    difference.departure() == Departure::Unspecified
}

/// The share of comparisons without a difference, in percent, rounded down: `100 %` only if all agree.
fn share(of: &v1::Agreement) -> String {
    let alike = of
        .compared
        .saturating_sub(of.explained.saturating_add(of.unexplained));
    match u128::from(alike) * 10_000 / u128::from(of.compared.max(1)) {
        _ if of.compared == 0 => "-".to_owned(),
        10_000 => "100 %".to_owned(),
        share => format!("{}.{:02} %", share / 100, share % 100),
    }
}

fn total(agreements: &[v1::Agreement]) -> v1::Agreement {
    let sum =
        |of: fn(&v1::Agreement) -> u64| agreements.iter().map(of).fold(0, u64::saturating_add);
    v1::Agreement {
        subject: v1::Subject::Unspecified.into(),
        compared: sum(|it| it.compared),
        explained: sum(|it| it.explained),
        unexplained: sum(|it| it.unexplained),
        not_compared: sum(|it| it.not_compared),
    }
}

/// The number of compared ReplicaSets, and the duration of the comparison.
fn extent(answer: &v1::ListDifferencesResponse) -> String {
    let sets = count(answer.replica_sets, "ReplicaSet");
    let since = answer.start_time.as_ref().and_then(age::wire_time);
    let long = since.map(|since| jiff::Timestamp::now().duration_since(since));
    let long = long.and_then(|long| Duration::try_from(long).ok());
    match long {
        Some(long) => format!("{sets}, for {}", age::human(long)),
        None => sets.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use decree_api::v1::{Agreement, Departure, Difference, ListDifferencesResponse, Subject};
    use expect_test::expect;

    use super::*;
    use crate::tests::written;

    fn difference(name: &str, departure: Departure) -> Difference {
        Difference {
            replica_set: Some(v1::ObjectRef {
                namespace: "default".to_owned(),
                name: name.to_owned(),
                uid: "1".to_owned(),
            }),
            detect_time: Some(prost_types::Timestamp {
                seconds: 1_777_636_800,
                nanos: 0,
            }),
            subject: Subject::Victims.into(),
            decided: "delete web-jv8tl (not ready)".to_owned(),
            done: "deleted <b>web|b</b>\u{1b}[2J".to_owned(),
            departure: departure.into(),
            why: "the pods had not changed for 5 s".to_owned(),
            ..Difference::default()
        }
    }

    fn answer() -> ListDifferencesResponse {
        let of = |subject: Subject, compared, explained, unexplained| Agreement {
            subject: subject.into(),
            compared,
            explained,
            unexplained,
            not_compared: compared / 100,
        };
        let mut unexplained = difference("web", Departure::Unspecified);
        unexplained.decided_pods = vec!["web-jv8tl".to_owned()];
        unexplained.done_pods = vec!["web-7qz9m".to_owned(), "web-x".to_owned()];
        let explained = difference("api", Departure::DeletedByOthers);
        ListDifferencesResponse {
            differences: vec![explained, unexplained],
            shadows: 1,
            compared: 20_003,
            agreements: vec![
                of(Subject::Count, 20_000, 0, 0),
                of(Subject::Victims, 3, 1, 1),
                of(Subject::Status, 0, 0, 0),
            ],
            deleted_by_others: 3,
            replica_sets: 41,
            ..ListDifferencesResponse::default()
        }
    }

    fn report_of(answer: &ListDifferencesResponse) -> String {
        written(|out| report(answer, Page::default(), out))
    }

    #[test]
    fn report_says_how_much_was_compared_and_each_difference_with_why() {
        expect![[r#"
            20003 compared, 1 unexplained, 1 explained; 200 not compared.
            99.99 % agree, of 41 ReplicaSets. Pods that others deleted: 3.

            SUBJECT   COMPARED   AGREE     EXPLAINED   UNEXPLAINED   NOT COMPARED
            Count     20000      100 %     0           0             200
            Victims   3          33.33 %   1           1             0
            Status    0          -         0           0             0

            Unexplained: 1

              default/web  Victims  2026-05-01T12:00:00.000Z
                decided  delete web-jv8tl (not ready)
                done     deleted <b>web|b</b>\u{1b}[2J
                why      the pods had not changed for 5 s
                DECIDED HERE   DONE THERE
                web-jv8tl      web-7qz9m
                               web-x

            Explained: 1

              default/api  Victims  2026-05-01T12:00:00.000Z
                decided  delete web-jv8tl (not ready)
                done     deleted <b>web|b</b>\u{1b}[2J
                why      the pods had not changed for 5 s
        "#]]
        .assert_eq(&report_of(&answer()));
    }

    #[test]
    fn counts_of_a_hostile_server_end_nothing() {
        let of = Agreement {
            compared: u64::MAX,
            explained: u64::MAX,
            unexplained: 1,
            ..Agreement::default()
        };
        let answer = ListDifferencesResponse {
            compared: u64::MAX,
            agreements: vec![of; 2],
            ..answer()
        };
        let report = report_of(&answer);
        assert!(report.contains("\n0.00 % agree, "), "{report}");
    }

    #[test]
    fn nothing_that_differs_is_a_report_too() {
        let none = ListDifferencesResponse {
            shadows: 1,
            ..ListDifferencesResponse::default()
        };
        let said = "Nothing to compare yet: 0 compared, 0 unexplained; 0 not compared.\n";
        assert_eq!(report_of(&none), said);
    }
}

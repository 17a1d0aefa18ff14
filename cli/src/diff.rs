//! `decree diff`: what another controller did differently from the decisions of a server whose agent is in shadow mode.

mod report;

use decree::v1;

pub(crate) use self::report::report;
use self::report::{departure, is_unexplained, subject};
use crate::{
    age,
    args::{DiffArgs, FailOn},
    decision,
    exit::{Exit, Failure},
    format,
    page::{Io, Page},
    server::{self, Server},
    source::{self, Source},
    stale,
    table::Table,
};

const HEADERS: [&str; 6] = [
    "TIME",
    "REPLICASET",
    "SUBJECT",
    "DECIDED",
    "DONE",
    "DEPARTURE",
];

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
        };
        let answer = server.inspection().list_differences(request).await;
        let answer = server.answer(answer)?;
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
        let cause = "no agent in shadow mode is connected, so there is nothing to compare";
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
    let fails = match args.fail_on {
        FailOn::Any => !answer.differences.is_empty(),
        FailOn::Unexplained => answer.differences.iter().any(is_unexplained),
        FailOn::Never => false,
    };
    Ok(if fails { Exit::No } else { exit })
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
    if output.is_wide() && !answer.differences.is_empty() {
        let mut table = Table::new(Page::new(io), HEADERS).no_headers(args.print.no_headers);
        for difference in &answer.differences {
            table.row([
                age::time_text(difference.time.as_ref()),
                decision::path(difference.replica_set.as_ref()),
                subject(difference.subject()).to_owned(),
                difference.decided.clone(),
                difference.done.clone(),
                departure(difference.departure()).to_owned(),
            ]);
        }
        return Ok(table.write(io.stdout, 0)?);
    }
    Ok(report(answer, Page::new(io), io.stdout)?)
}

#[cfg(test)]
mod tests {
    use decree::v1::{Agreement, Departure, Difference, ListDifferencesResponse, Subject};
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
            time: Some(prost_types::Timestamp {
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
    fn nothing_that_differs_is_a_report_too() {
        let none = ListDifferencesResponse {
            shadows: 1,
            ..ListDifferencesResponse::default()
        };
        let said = "Nothing to compare yet: 0 compared, 0 unexplained; 0 not compared.\n";
        assert_eq!(report_of(&none), said);
    }
}

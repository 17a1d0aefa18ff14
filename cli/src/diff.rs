//! `decree diff`: what another controller did otherwise than a server decided, while its agent only watched.

use std::io::{self, Write};

use decree::v1::{self, Departure, Difference};

use crate::{
    age,
    args::{DiffArgs, Scope},
    decision,
    exit::{Exit, Failure},
    page, proto_json,
    server::{self, Server},
    streams::Io,
    table::{Table, one_line},
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
    let scope = args.scope.scope()?;
    let mut answer = server::block_on(ask(args, &scope))?;
    if answer.shadows == 0 {
        let cause = "no agent in mode shadow is connected, so there is nothing to compare";
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
    print(args, &answer, io)?;
    Ok(if answer.differences.is_empty() {
        Exit::Done
    } else {
        Exit::No
    })
}

async fn ask(args: &DiffArgs, scope: &Scope) -> Result<v1::ListDifferencesResponse, Failure> {
    let server = Server::connect(&args.inspection.server).await?;
    let request = v1::ListDifferencesRequest {
        cluster: args.inspection.cluster.clone(),
        namespace: scope.namespace.clone(),
        name: scope.name.clone(),
    };
    let answer = server.inspection().list_differences(request).await;
    let answer = answer.map_err(|status| server.failure(&status))?;
    Ok(answer.into_inner())
}

fn print(
    args: &DiffArgs,
    answer: &v1::ListDifferencesResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let output = &args.print.output;
    if !output.is_for_people() {
        let json = proto_json::value("ListDifferencesResponse", answer)?;
        let sets = answer
            .differences
            .iter()
            .filter_map(|it| it.replica_set.as_ref());
        let mut names: Vec<_> = sets.map(|set| set.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return output.write(io.stdout, &json, &names);
    }
    if output.is_wide() && !answer.differences.is_empty() {
        return Ok(table(&answer.differences)
            .no_headers(args.print.no_headers)
            .write(io.stdout, "")?);
    }
    Ok(report(answer, io.stdout)?)
}

/// Writes what was compared, and each difference with why, the unexplained ones first.
pub(crate) fn report(answer: &v1::ListDifferencesResponse, out: &mut dyn Write) -> io::Result<()> {
    for line in page::wrap(&compared(answer)) {
        writeln!(out, "{line}")?;
    }
    let (unexplained, documented): (Vec<_>, Vec<_>) =
        answer.differences.iter().partition(|it| is_unexplained(it));
    let parts = [
        ("Unexplained: please look at these", unexplained),
        (
            "Explained by a documented departure from upstream",
            documented,
        ),
    ];
    for (title, differences) in parts {
        if differences.is_empty() {
            continue;
        }
        writeln!(out, "\n{title}: {}", differences.len())?;
        for difference in differences {
            write_difference(difference, out)?;
        }
    }
    Ok(())
}

/// Says how much was compared and what came of it.
fn compared(answer: &v1::ListDifferencesResponse) -> String {
    let v1::ListDifferencesResponse {
        differences,
        shadows,
        compared,
    } = answer;
    let agents = match shadows {
        1 => String::new(),
        shadows => format!(", by {shadows} agents"),
    };
    let what = match compared {
        0 => {
            return format!(
                "Nothing to compare yet: the other controller has done nothing since the agent connected{agents}."
            );
        }
        1 => "1 decision".to_owned(),
        compared => format!("{compared} decisions"),
    };
    let result = match differences.len() {
        0 => "all agree".to_owned(),
        1 => "1 differs".to_owned(),
        differs => format!("{differs} differ"),
    };
    format!("Compared {what} with what the other controller did{agents}: {result}.")
}

fn write_difference(difference: &Difference, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\n  {}  {}  {}",
        one_line(&decision::path(difference.replica_set.as_ref())),
        subject(difference.subject()),
        age::time_text(difference.time.as_ref())
    )?;
    let why = why(difference.departure());
    let texts = [
        ("decided", difference.decided.as_str()),
        ("done", &difference.done),
        ("why", why),
    ];
    for (label, text) in texts {
        for line in page::wrap(&format!("    {label:<7}  {}", one_line(text))) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn is_unexplained(difference: &Difference) -> bool {
    difference.departure() == Departure::Unspecified
}

fn table(differences: &[Difference]) -> Table {
    let mut table = Table::new(HEADERS);
    for difference in differences {
        table.row([
            age::time_text(difference.time.as_ref()),
            decision::path(difference.replica_set.as_ref()),
            subject(difference.subject()).to_owned(),
            difference.decided.clone(),
            difference.done.clone(),
            departure(difference.departure()).to_owned(),
        ]);
    }
    table
}

/// Says why a difference is there.
const fn why(departure: Departure) -> &'static str {
    match departure {
        Departure::Unspecified => {
            "unknown: a fault here or there, or somebody else changed something meanwhile"
        }
        Departure::OrderOfDeletion => {
            "OrderOfDeletion: the order of deletion is total here, where the other's has ties and cycles"
        }
        Departure::ReplicaFailure => {
            "ReplicaFailure: this condition mirrors the latest attempt here"
        }
    }
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

const fn departure(departure: Departure) -> &'static str {
    match departure {
        Departure::Unspecified => "<none>",
        Departure::OrderOfDeletion => "OrderOfDeletion",
        Departure::ReplicaFailure => "ReplicaFailure",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

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
            subject: v1::Subject::Victims.into(),
            decided: "delete web-jv8tl (not ready)".to_owned(),
            done: "deleted web-7qz9m\u{1b}[2J".to_owned(),
            departure: departure.into(),
            ..Difference::default()
        }
    }

    fn report_of(compared: u64, differences: Vec<Difference>) -> String {
        let answer = v1::ListDifferencesResponse {
            differences,
            shadows: 1,
            compared,
        };
        let mut out = Vec::new();
        report(&answer, &mut out).expect("a vector takes all");
        String::from_utf8(out).expect("only text was written")
    }

    #[test]
    fn report_says_how_much_was_compared_and_each_difference_with_why() {
        let differences = vec![
            difference("api", Departure::OrderOfDeletion),
            difference("web", Departure::Unspecified),
        ];
        expect![[r#"
            Compared 1204 decisions with what the other controller did: 2 differ.

            Unexplained: please look at these: 1

              default/web  Victims  2026-05-01T12:00:00.000Z
                decided  delete web-jv8tl (not ready)
                done     deleted web-7qz9m\u{1b}[2J
                why      unknown: a fault here or there, or somebody else changed something
                    meanwhile

            Explained by a documented departure from upstream: 1

              default/api  Victims  2026-05-01T12:00:00.000Z
                decided  delete web-jv8tl (not ready)
                done     deleted web-7qz9m\u{1b}[2J
                why      OrderOfDeletion: the order of deletion is total here, where the
                    other's has ties and cycles
        "#]]
        .assert_eq(&report_of(1_204, differences));
    }

    #[test]
    fn nothing_that_differs_is_a_report_too() {
        assert_eq!(
            report_of(7, Vec::new()),
            "Compared 7 decisions with what the other controller did: all agree.\n"
        );
        assert!(report_of(0, Vec::new()).starts_with("Nothing to compare yet"));
    }
}

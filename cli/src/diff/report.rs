//! The comparison and its differences, for people.

use std::io::{self, Write};

use decree::v1::{self, Difference};
use server_core::wording::count;

use super::words;
use crate::{
    age, decision, page,
    table::{Table, one_line},
};

/// The width of the table of agreement.
const TABLE_COLUMNS: usize = 60;

/// Writes the comparison, and each difference with its reason, the unexplained ones first, in lines of `columns`. If `columns` is
/// small, the agreement is without its subjects.
pub(crate) fn report(
    answer: &v1::ListDifferencesResponse,
    columns: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    page::write(&compared(answer), columns, out)?;
    agreement(answer, columns, out)?;
    let (unexplained, explained) = words::parts(answer);
    let parts = [
        ("Unexplained: please look at these", unexplained),
        ("Explained by what is documented", explained),
    ];
    for (title, differences) in parts {
        if differences.is_empty() {
            continue;
        }
        writeln!(out, "\n{title}: {}", differences.len())?;
        for difference in differences {
            write_difference(difference, columns, out)?;
        }
    }
    Ok(())
}

/// The number of comparisons and their result.
fn compared(answer: &v1::ListDifferencesResponse) -> String {
    let v1::ListDifferencesResponse {
        differences,
        shadows,
        compared,
        ..
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
        compared => count(*compared, "decision"),
    };
    let result = match differences.len() {
        0 => "all agree".to_owned(),
        1 => "1 differs".to_owned(),
        differs => format!("{differs} differ"),
    };
    format!("Compared {what} with what the other controller did{agents}: {result}.")
}

fn write_difference(
    difference: &Difference,
    columns: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = format!(
        "  {}  {}  {}",
        one_line(&decision::path(difference.replica_set.as_ref())),
        words::subject(difference.subject()),
        age::time_text(difference.time.as_ref())
    );
    writeln!(out)?;
    page::write(&title, columns, out)?;
    let why = words::why(difference.departure());
    let texts = [
        ("decided", &difference.decided),
        ("done", &difference.done),
        ("why", &why),
    ];
    for (label, text) in texts {
        let line = format!("    {label:<7}  {}", one_line(text));
        page::write(&line, columns, out)?;
    }
    side_by_side(difference, out)
}

/// Writes the pods of both sides in two columns.
fn side_by_side(difference: &Difference, out: &mut dyn Write) -> io::Result<()> {
    let (decided, done) = (&difference.decided_pods, &difference.done_pods);
    let rows = decided.len().max(done.len());
    if rows == 0 {
        return Ok(());
    }
    let mut table = Table::new(["DECIDED HERE", "DONE THERE"]);
    let pod = |pods: &[String], at: usize| pods.get(at).cloned().unwrap_or_default();
    for at in 0..rows {
        table.row([pod(decided, at), pod(done, at)]);
    }
    table.write(out, "    ")
}

/// Writes the share of agreement by subject.
fn agreement(
    answer: &v1::ListDifferencesResponse,
    columns: usize,
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
    page::write(&line, columns, out)?;
    if columns < TABLE_COLUMNS {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(["SUBJECT", "COMPARED", "AGREE", "EXPLAINED", "UNEXPLAINED"]);
    for of in &answer.agreements {
        table.row([
            words::subject(of.subject()).to_owned(),
            of.compared.to_string(),
            words::share(of),
            of.explained.to_string(),
            of.unexplained.to_string(),
        ]);
    }
    table.write(out, "")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use decree::v1::Departure;

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
            ..v1::ListDifferencesResponse::default()
        };
        written(|out| report(&answer, page::COLUMNS, out))
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

            Explained by what is documented: 1

              default/api  Victims  2026-05-01T12:00:00.000Z
                decided  delete web-jv8tl (not ready)
                done     deleted web-7qz9m\u{1b}[2J
                why      OrderOfDeletion: the order of deletion is total here, where the
                    other's has ties and cycles
        "#]]
        .assert_eq(&report_of(1_204, differences));
    }

    #[test]
    fn agreement_is_said_by_subject_and_pods_stand_side_by_side() {
        let of = |subject: v1::Subject, compared, explained, unexplained| v1::Agreement {
            subject: subject.into(),
            compared,
            explained,
            unexplained,
        };
        let mut told = difference("web", Departure::Unspecified);
        told.decided_pods = vec!["web-jv8tl".to_owned()];
        told.done_pods = vec!["web-7qz9m".to_owned(), "web-x".to_owned()];
        let answer = v1::ListDifferencesResponse {
            differences: vec![told],
            shadows: 1,
            compared: 20_001,
            agreements: vec![
                of(v1::Subject::Count, 20_000, 0, 0),
                of(v1::Subject::Victims, 1, 0, 1),
                of(v1::Subject::Status, 0, 0, 0),
            ],
            deleted_by_others: 3,
            replica_sets: 41,
            since: None,
        };
        expect![[r#"
            Compared 20001 decisions with what the other controller did: 1 differs.
            99.99 % agree, of 41 ReplicaSets. Pods that others deleted: 3.

            SUBJECT   COMPARED   AGREE    EXPLAINED   UNEXPLAINED
            Count     20000      100 %    0           0
            Victims   1          0.00 %   0           1
            Status    0          -        0           0

            Unexplained: please look at these: 1

              default/web  Victims  2026-05-01T12:00:00.000Z
                decided  delete web-jv8tl (not ready)
                done     deleted web-7qz9m\u{1b}[2J
                why      unknown: a fault here or there, or somebody else changed something
                    meanwhile
                DECIDED HERE   DONE THERE
                web-jv8tl      web-7qz9m
                               web-x
        "#]]
        .assert_eq(&written(|out| report(&answer, page::COLUMNS, out)));
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

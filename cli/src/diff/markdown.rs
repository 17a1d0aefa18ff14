//! The report as Markdown, for others to read.

use std::io::{self, Write};

use decree::v1::{self, Difference};

use super::words;
use crate::{age, decision, table::one_line};

pub(super) fn write(answer: &v1::ListDifferencesResponse, out: &mut dyn Write) -> io::Result<()> {
    let total = words::total(&answer.agreements);
    writeln!(out, "# Decree beside the controller of the cluster\n")?;
    let (share, compared) = (words::share(&total), total.compared);
    let (extent, others) = (words::extent(answer), answer.deleted_by_others);
    writeln!(
        out,
        "{share} of {compared} comparisons agree, of {extent}. Pods that others deleted: {others}.\n\n\
         | subject | compared | agree | explained | unexplained |\n| --- | ---: | ---: | ---: | ---: |"
    )?;
    for of in answer.agreements.iter().chain([&total]) {
        let subject = if of.subject() == v1::Subject::Unspecified {
            "**all**"
        } else {
            words::subject(of.subject())
        };
        let (share, compared) = (words::share(of), of.compared);
        let (explained, unexplained) = (of.explained, of.unexplained);
        writeln!(
            out,
            "| {subject} | {compared} | {share} | {explained} | {unexplained} |"
        )?;
    }
    let (unexplained, explained) = words::parts(answer);
    for (title, differences) in [("Unexplained", unexplained), ("Explained", explained)] {
        if !differences.is_empty() {
            writeln!(out, "\n## {title}: {}", differences.len())?;
        }
        for difference in differences {
            write_difference(difference, out)?;
        }
    }
    Ok(())
}

fn write_difference(difference: &Difference, out: &mut dyn Write) -> io::Result<()> {
    let set = cell(&decision::path(difference.replica_set.as_ref()));
    let subject = words::subject(difference.subject());
    let time = age::time_text(difference.time.as_ref());
    writeln!(out, "\n### {set}: {subject}, {time}\n")?;
    writeln!(out, "{}\n", cell(&words::why(difference.departure())))?;
    writeln!(out, "| decided here | done there |\n| --- | --- |")?;
    let (decided, done) = (cell(&difference.decided), cell(&difference.done));
    writeln!(out, "| {decided} | {done} |")?;
    let (decided, done) = (&difference.decided_pods, &difference.done_pods);
    let pod = |pods: &[String], at: usize| pods.get(at).map(|pod| cell(pod)).unwrap_or_default();
    for at in 0..decided.len().max(done.len()) {
        writeln!(out, "| {} | {} |", pod(decided, at), pod(done, at))?;
    }
    Ok(())
}

/// Escapes text so that it ends no cell and has no markup: much of it comes from peers.
fn cell(text: &str) -> String {
    let mut cell = String::new();
    for letter in one_line(text).chars() {
        if "\\`*_[]<>|#!".contains(letter) {
            cell.push('\\');
        }
        cell.push(letter);
    }
    cell
}

#[cfg(test)]
mod tests {
    use decree::v1::Departure;
    use expect_test::expect;

    use super::*;
    use crate::tests::written;

    #[test]
    fn report_can_be_sent_and_texts_are_no_markup() {
        let told = Difference {
            subject: v1::Subject::Victims.into(),
            decided: "delete web-a (not ready)".to_owned(),
            done: "deleted <b>web|b</b>".to_owned(),
            departure: Departure::DeletedByOthers.into(),
            decided_pods: vec!["web-a".to_owned()],
            done_pods: vec!["web-b".to_owned(), "web-c".to_owned()],
            ..Difference::default()
        };
        let victims = v1::Agreement {
            subject: v1::Subject::Victims.into(),
            compared: 3,
            explained: 1,
            unexplained: 0,
        };
        let answer = v1::ListDifferencesResponse {
            differences: vec![told],
            shadows: 1,
            compared: 3,
            agreements: vec![victims],
            deleted_by_others: 0,
            replica_sets: 1,
            since: None,
        };
        expect![[r#"
            # Decree beside the controller of the cluster

            66.66 % of 3 comparisons agree, of 1 ReplicaSet. Pods that others deleted: 0.

            | subject | compared | agree | explained | unexplained |
            | --- | ---: | ---: | ---: | ---: |
            | Victims | 3 | 66.66 % | 1 | 0 |
            | **all** | 3 | 66.66 % | 1 | 0 |

            ## Explained: 1

            ### -: Victims, <unknown>

            DeletedByOthers: somebody else deleted a pod amid a scale-down, as far as can be seen

            | decided here | done there |
            | --- | --- |
            | delete web-a (not ready) | deleted \<b\>web\|b\</b\> |
            | web-a | web-b |
            |  | web-c |
        "#]]
        .assert_eq(&written(|out| write(&answer, out)));
    }
}

//! The report as Markdown, for others to read.

use std::io::{self, Write};

use decree::v1::{self, Difference};

use super::words;
use crate::{age, decision, table::one_line};

pub(super) fn write(answer: &v1::ListDifferencesResponse, out: &mut dyn Write) -> io::Result<()> {
    let total = words::total(&answer.agreements);
    writeln!(out, "# Decree beside the controller of the cluster\n")?;
    let (verdict, share) = (words::verdict(answer), words::share(&total));
    let (extent, others) = (words::extent(answer), answer.deleted_by_others);
    writeln!(
        out,
        "{verdict}.\n{share} agree, of {extent}. Pods that others deleted: {others}.\n\n\
         | subject | compared | agree | explained | unexplained | not compared |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |"
    )?;
    for of in answer.agreements.iter().chain([&total]) {
        let subject = if of.subject() == v1::Subject::Unspecified {
            "**all**"
        } else {
            words::subject(of.subject())
        };
        let (share, compared) = (words::share(of), of.compared);
        let (explained, unexplained) = (of.explained, of.unexplained);
        let skipped = of.not_compared;
        writeln!(
            out,
            "| {subject} | {compared} | {share} | {explained} | {unexplained} | {skipped} |"
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
    writeln!(out, "{}\n", cell(&difference.why))?;
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

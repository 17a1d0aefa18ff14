//! `decree check`: whether Decree can work here, with a line for each condition.
//!
//! A check that fails to run is a finding as well, so one fault hides no other.

use std::io::{self, Write};

use clap::ValueEnum as _;
use serde_json::json;

use crate::{
    args::{CheckArgs, Output},
    exit::{Exit, Failure},
    format::write_json,
    page::{self, Page},
    server as connection,
    streams::Io,
    table::one_line,
};

mod agent;
mod cluster;
mod finding;
mod permissions;
pub(crate) mod section;
mod server;

use finding::{Finding, Grade};
use section::Section;

/// The maximum width of a line.
const COLUMNS: usize = 100;

pub(crate) fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let findings = connection::block_on(async {
        let (mut findings, sessions) = server::check(args).await;
        findings.append(&mut agent::check(args).await);
        findings.append(&mut cluster::check(args, sessions.as_deref()).await);
        Ok(findings)
    })?;
    match args.output {
        Output::Table => write(&findings, Page::new(io), io.stdout)?,
        Output::Json => write_json(&json(&findings), io.stdout)?,
    }
    let failed = findings.iter().any(|finding| finding.grade == Grade::Fail);
    Ok(if failed { Exit::No } else { Exit::Done })
}

/// Writes the findings by section: a mark and a line each. Below a finding that is not well, writes the remedy and a link to the
/// documentation.
fn write(findings: &[Finding], page: Page, out: &mut dyn Write) -> io::Result<()> {
    for section in Section::value_variants() {
        let is_its = |finding: &&Finding| Section::of(&finding.check) == *section;
        let mut its = findings.iter().filter(is_its).peekable();
        if its.peek().is_none() {
            continue;
        }
        let title = section.title();
        writeln!(out, "{title}\n{}", "-".repeat(title.len()))?;
        for finding in its {
            write_finding(finding, *section, page, out)?;
        }
        writeln!(out)?;
    }
    let count = |grade| findings.iter().filter(|it| it.grade == grade).count();
    let (worst, said) = match (count(Grade::Fail), count(Grade::Warn)) {
        (0, 0) if findings.is_empty() => (Grade::Ok, "nothing was checked".to_owned()),
        (0, 0) => (Grade::Ok, "all checks passed".to_owned()),
        (failed, warned) => {
            let worst = if failed > 0 { Grade::Fail } else { Grade::Warn };
            let of = findings.len();
            let said = format!("{failed} failed, {warned} to look at, of {of}");
            (worst, said)
        }
    };
    writeln!(out, "{} {said}", worst.painted(page.paint))
}

fn write_finding(
    finding: &Finding,
    section: Section,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Finding {
        grade,
        check,
        detail,
        hint,
    } = finding;
    let columns = page.columns.map_or(COLUMNS, |it| it.min(COLUMNS));
    let mut texts = detail.lines();
    // The mark replaces the first letter later, because colors would count as letters in the line breaks.
    let first = format!("? {check}: {}", texts.next().unwrap_or_default());
    let mut lines = page::wrap(&one_line(&first), columns);
    lines[0] = format!("{}{}", grade.painted(page.paint), &lines[0][1..]);
    let details = texts.map(|detail| format!("    {detail}"));
    let hint = (*grade != Grade::Ok).then(|| format!("    hint: {hint}"));
    for text in details.chain(hint) {
        lines.extend(page::wrap(&one_line(&text), columns));
    }
    if *grade != Grade::Ok {
        lines.push(format!("    see {}", section.link(check)));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn json(findings: &[Finding]) -> serde_json::Value {
    let line = |finding: &Finding| {
        let Finding {
            grade,
            check,
            detail,
            hint,
        } = finding;
        let section = Section::of(check);
        json!({
            "section": section.title(), "check": check, "result": grade.as_str(),
            "detail": detail.replace('\n', "; "), "hint": hint, "link": section.link(check),
        })
    };
    findings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{paint::Paint, tests::written};

    fn findings() -> Vec<Finding> {
        let grant = "grant it to the agent by a Role or ClusterRole";
        vec![
            Finding::ok("server", "http://127.0.0.1:50051 answers"),
            Finding::fail("may delete pods", "not granted", grant),
            Finding::warn(
                "session",
                format!("the server {}more", "says a lot and ".repeat(9)),
                "start one",
            ),
        ]
    }

    fn text(findings: &[Finding], is_colored: bool) -> String {
        let page = Page {
            columns: None,
            paint: Paint::new(is_colored),
        };
        written(|out| write(findings, page, out))
    }

    #[test]
    fn findings_come_by_section_with_hint_and_link_below() {
        let plain = text(&findings(), false);
        expect![[r#"
            decision server
            ---------------
            √ server: http://127.0.0.1:50051 answers

            permissions
            -----------
            × may delete pods: not granted
                hint: grant it to the agent by a Role or ClusterRole
                see https://github.com/decree-dev/decree/blob/main/docs/operations.md#on-a-cluster

            agent
            -----
            ‼ session: the server says a lot and says a lot and says a lot and says a lot and says a lot and
                says a lot and says a lot and says a lot and says a lot and more
                hint: start one
                see https://github.com/decree-dev/decree/blob/main/docs/operations.md#starting

            × 1 failed, 1 to look at, of 3
        "#]]
        .assert_eq(&plain);
        let colored = text(&findings(), true);
        for mark in [
            "\u{1b}[32m√\u{1b}[0m server: ",
            "\u{1b}[33m‼",
            "\u{1b}[31m×\u{1b}[0m 1 failed",
        ] {
            assert!(colored.contains(mark), "{colored}");
        }
        let well = text(&findings()[..1], false);
        assert!(well.ends_with("\n√ all checks passed\n"), "{well}");
    }

    #[test]
    fn links_lead_to_headings_of_the_documents() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sections = Section::value_variants().iter();
        let links = sections.flat_map(|section| ["budget", "any"].map(|check| section.link(check)));
        for link in links {
            let (_, place) = link.split_once("/main/").expect("a page of the repository");
            let (page, anchor) = place.split_once('#').expect("a heading");
            let page = std::fs::read_to_string(root.join(page)).expect("the page is there");
            let anchors = page.lines().filter(|line| line.starts_with('#'));
            let mut anchors = anchors.map(|line| {
                let title = line.trim_start_matches('#').trim().to_lowercase();
                title.replace(' ', "-").replace(',', "")
            });
            assert!(anchors.any(|it| it == anchor), "{place}");
        }
    }
}

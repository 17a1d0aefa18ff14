//! `decree check`: whether Decree can work here, with a line for each condition.
//!
//! A check that fails to run is a finding as well, so one fault hides no other.

use std::io::{self, Write};

use clap::ValueEnum as _;
use decree::v1::Severity;
use serde_json::json;

use crate::{
    args::{CheckArgs, Output},
    exit::{Exit, Failure},
    format::write_json,
    page,
    paint::Paint,
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

#[derive(Clone, Copy, Debug)]
struct Style {
    utf8: bool,
    paint: Paint,
}

pub(crate) fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let findings = connection::block_on(async {
        let (mut findings, sessions) = server::check(args).await;
        findings.append(&mut agent::check(args).await);
        findings.append(&mut cluster::check(args, sessions.as_deref()).await);
        Ok(findings)
    })?;
    match args.output {
        Output::Table => {
            let style = Style {
                utf8: io.utf8,
                paint: io.paint(),
            };
            write(&findings, style, io.stdout)?;
        }
        Output::Json => write_json(&json(&findings), io.stdout)?,
    }
    let failed = findings.iter().any(|finding| finding.grade == Grade::Fail);
    Ok(if failed { Exit::No } else { Exit::Done })
}

/// Writes the findings by section: a mark and a line each. Below a finding that is not well, writes the remedy and a link to the
/// documentation.
fn write(findings: &[Finding], style: Style, out: &mut dyn Write) -> io::Result<()> {
    for section in Section::value_variants() {
        let its = findings
            .iter()
            .filter(|finding| Section::of(&finding.check) == *section)
            .collect::<Vec<_>>();
        if its.is_empty() {
            continue;
        }
        let title = section.title();
        writeln!(out, "{title}\n{}", "-".repeat(title.len()))?;
        for finding in its {
            write_finding(finding, *section, style, out)?;
        }
        writeln!(out)?;
    }
    let count = |grade| findings.iter().filter(|it| it.grade == grade).count();
    let worst = [Grade::Fail, Grade::Warn]
        .into_iter()
        .find(|grade| count(*grade) > 0)
        .unwrap_or(Grade::Ok);
    let said = match (count(Grade::Fail), count(Grade::Warn)) {
        (0, 0) if findings.is_empty() => "nothing was checked".to_owned(),
        (0, 0) => "all checks passed".to_owned(),
        (failed, warned) => format!(
            "{failed} failed, {warned} to look at, of {}",
            findings.len()
        ),
    };
    writeln!(out, "{} {said}", style.mark(worst))
}

fn write_finding(
    finding: &Finding,
    section: Section,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Finding {
        grade,
        check,
        detail,
        hint,
    } = finding;
    let (grade, mark) = (*grade, grade.mark(style.utf8));
    let (result, details) = detail.split_once('\n').unwrap_or((detail, ""));
    let line = format!("{mark} {check}: {result}");
    let mut lines = page::wrap(&one_line(&line), COLUMNS);
    // Colors would count as letters in the line breaks.
    if let Some(rest) = lines.first().and_then(|first| first.strip_prefix(mark)) {
        lines[0] = format!("{}{rest}", style.mark(grade));
    }
    for detail in details.lines() {
        lines.extend(page::wrap(&format!("    {}", one_line(detail)), COLUMNS));
    }
    if grade != Grade::Ok {
        let hint = format!("    hint: {hint}");
        lines.extend(page::wrap(&one_line(&hint), COLUMNS));
        lines.push(format!("    see {}", section.link(check)));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

// === impl Style ===

impl Style {
    fn mark(self, grade: Grade) -> String {
        let severity = match grade {
            Grade::Ok => Severity::InSync,
            Grade::Warn => Severity::Slow,
            Grade::Fail => Severity::Blocked,
        };
        self.paint.paint(severity, grade.mark(self.utf8))
    }
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
    use crate::tests::written;

    const PLAIN: Paint = Paint::new(false);

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

    fn text(findings: &[Finding], utf8: bool, paint: Paint) -> String {
        written(|out| write(findings, Style { utf8, paint }, out))
    }

    #[test]
    fn findings_come_by_section_with_hint_and_link_below() {
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
        .assert_eq(&text(&findings(), true, PLAIN));
        let wide = text(&findings(), true, PLAIN);
        assert!(wide.lines().all(|line| line.chars().count() <= COLUMNS));
    }

    #[test]
    fn marks_are_plain_where_the_terminal_is_not_utf_8() {
        let plain = text(&findings(), false, PLAIN);
        assert!(plain.is_ascii(), "{plain}");
        assert!(
            plain.contains("[fail] may delete pods: not granted\n"),
            "{plain}"
        );
        let well = text(&findings()[..1], false, PLAIN);
        assert!(well.ends_with("\n[ok] all checks passed\n"), "{well}");
    }

    #[test]
    fn marks_have_the_color_of_how_bad_it_is() {
        let colored = text(&findings(), true, Paint::new(true));
        for mark in [
            "\u{1b}[32m√\u{1b}[0m server: ",
            "\u{1b}[33m‼",
            "\u{1b}[31m×\u{1b}[0m 1 failed",
        ] {
            assert!(colored.contains(mark), "{colored}");
        }
        let codes = ["\u{1b}[32m", "\u{1b}[33m", "\u{1b}[31m", "\u{1b}[0m"];
        let plain = codes
            .iter()
            .fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(plain, text(&findings(), true, PLAIN));
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

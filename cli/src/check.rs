//! `decree check`: whether Decree can work here, with a line for each condition.
//!
//! A check that fails to run is a finding as well, so one fault hides no other.

use std::io::{self, Write};

use clap::ValueEnum;
use decree_api::v1::{self, Severity};
use serde_json::json;

use crate::{
    args::CheckArgs,
    exit::{Exit, Failure},
    page::{self, Io, Page, Paint, one_line},
    server::{self, Server},
};

mod agent;
mod cluster;
mod permissions;

const COLUMNS: usize = 100;
/// The remedy where an agent may lack the permissions for its Lease.
const ELECTION: &str =
    "only leader election needs it: grant it, or run the agent with --leader-elect=false";

pub(crate) fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let findings = server::block_on(async {
        let (mut findings, sessions) = check_server(args).await;
        findings.extend(agent::check(args).await);
        findings.append(&mut cluster::check(args, sessions.as_deref()).await);
        Ok(findings)
    })?;
    let output = args.print.output;
    if output.is_for_people() {
        write(&findings, Page::new(io), io.stdout)?;
    } else {
        output.write(io.stdout, &json(&findings), &[])?;
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
        let title = section.about().0;
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
    let Finding { check, grade, .. } = finding;
    let columns = page.columns.map_or(COLUMNS, |it| it.min(COLUMNS));
    let mut texts = finding.detail.lines();
    // The mark replaces the first letter later, because colors would count as letters in the line breaks.
    let first = format!("? {check}: {}", texts.next().unwrap_or_default());
    let mut lines = page::wrap(&one_line(&first), columns);
    lines[0] = format!("{}{}", grade.painted(page.paint), &lines[0][1..]);
    let details = texts.map(|detail| format!("    {detail}"));
    let hint = (*grade != Grade::Ok).then(|| format!("    hint: {}", finding.hint));
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
        let Finding { check, hint, .. } = finding;
        let section = Section::of(check);
        json!({
            "section": section.about().0, "check": check, "result": finding.grade.as_str(),
            "detail": finding.detail.replace('\n', "; "), "hint": hint, "link": section.link(check),
        })
    };
    findings.iter().map(line).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One line of the output.
#[derive(Clone, Debug)]
struct Finding {
    grade: Grade,
    check: String,
    /// The result. Further lines are details of it.
    detail: String,
    hint: String,
}

impl Grade {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }

    /// The mark of a line, in the color of how bad it is.
    fn painted(self, paint: Paint) -> String {
        let (mark, severity) = match self {
            Self::Ok => ("√", Severity::InSync),
            Self::Warn => ("‼", Severity::Slow),
            Self::Fail => ("×", Severity::Blocked),
        };
        paint.paint(severity, mark)
    }
}

impl Finding {
    fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            grade: Grade::Ok,
            check: check.into(),
            detail: detail.into(),
            hint: String::new(),
        }
    }

    fn warn(check: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            grade: Grade::Warn,
            hint: hint.into(),
            ..Self::ok(check, detail)
        }
    }

    fn fail(check: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            grade: Grade::Fail,
            ..Self::warn(check, detail, hint)
        }
    }
}

const DOCUMENTS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/");

/// A group of checks, in the order in which they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// Whether the decision server answers, and its version
    Server,
    /// Whether the API server answers, and its version
    Cluster,
    /// Acts of an agent that these credentials do not allow
    Permissions,
    /// The agent's session, its Lease, and what its budget holds
    Agent,
    /// Whether the built-in controller is declared off, and whether other controllers act
    Others,
}

impl Section {
    /// The section of a check by its name. An unknown check belongs to the agent, as most checks do.
    fn of(check: &str) -> Self {
        match check {
            "server" | "versions" => Self::Server,
            "credentials" | "api server" => Self::Cluster,
            "permissions" => Self::Permissions,
            "built-in controller" | "other controllers" => Self::Others,
            check if check.starts_with("may ") => Self::Permissions,
            _ => Self::Agent,
        }
    }

    /// The page about a check of this section.
    fn link(self, check: &str) -> String {
        let page = match check {
            "budget" => "safeguards.md#when-the-budget-pauses-an-agent",
            _ => self.about().1,
        };
        format!("{DOCUMENTS}{page}")
    }

    /// The title, and the heading of the documentation.
    const fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Server => ("decision server", "cli.md#querying-a-server"),
            Self::Cluster => ("cluster", "operations.md#choose-the-cluster"),
            Self::Permissions => ("permissions", "operations.md#on-a-cluster"),
            Self::Agent => ("agent", "operations.md#starting"),
            Self::Others => ("other controllers", "operations.md#migrating-and-back"),
        }
    }
}

/// Returns the sessions that the server lists as well, for the checks of the agent.
async fn check_server(args: &CheckArgs) -> (Vec<Finding>, Option<Vec<v1::SessionSummary>>) {
    let is_asked_for = args.asks_for(Section::Server);
    if !is_asked_for && !args.asks_for(Section::Agent) {
        return (Vec::new(), None);
    }
    let sessions = async { Server::connect(&args.server).await?.sessions("").await };
    match sessions.await {
        answer if !is_asked_for => (Vec::new(), answer.ok().map(|answer| answer.sessions)),
        Ok(answer) => {
            let reached = Finding::ok("server", format!("{} answers", args.server.endpoint()));
            let version = version(&answer.server_version);
            (vec![reached, version], Some(answer.sessions))
        }
        Err(failure) => {
            let hint = failure.hint.unwrap_or_default();
            let finding = Finding::fail("server", failure.cause, hint);
            (vec![finding], None)
        }
    }
}

fn version(server: &str) -> Finding {
    const CHECK: &str = "versions";
    // All binaries of a release have one version and one commit.
    let own = service::build_info::text();
    if server == own {
        return Finding::ok(CHECK, format!("server and command are {own}"));
    }
    let server = if server.is_empty() { "older" } else { server };
    let detail = format!("the server is {server}, this command {own}");
    Finding::warn(
        CHECK,
        detail,
        "use the command from the release of the server",
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{page::Paint, tests::written};

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

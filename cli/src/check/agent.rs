//! What the admin port of the agent tells: whether its budget holds anything, and whether versions went back recently.

use std::time::Duration;

use agent_core::history::MEANING;
use decree_agent::{HISTORY_PATH, HOLDS_PATH, HeldScope, HistoryPage, HoldsPage, Regression};
use http::StatusCode;

use super::{finding::Finding, section::Section};
use crate::{age, args::CheckArgs, exit::Exit, http::ask_agent, table::one_line};

const BUDGET: &str = "budget";
const HISTORY: &str = "history";
const ADDRESS_HINT: &str = "set the admin address of decree-agent with --agent, or --agent off";
const READY_PATH: &str = "/readyz";
/// The maximum number of holds with a separate line.
const LINES_MAX: usize = 10;
/// The age up to which the check shows that versions went back.
const SHOWN_FOR: Duration = Duration::from_secs(60 * 60);

pub(super) async fn check(args: &CheckArgs) -> Vec<Finding> {
    let mut findings = Vec::new();
    if args.agent == "off" {
        return findings;
    }
    if args.asks_for(Section::Agent) {
        findings.append(&mut budget(args).await);
    }
    if args.asks_for(Section::History) {
        findings.extend(history(args).await);
    }
    findings
}

async fn budget(args: &CheckArgs) -> Vec<Finding> {
    let url = &args.agent;
    let page = match ask_agent(url, HOLDS_PATH, None, args.server.timeout).await {
        Ok((StatusCode::OK, answer)) => serde_json::from_slice::<HoldsPage>(&answer).ok(),
        Ok(_) => None,
        Err(failure) if failure.exit == Exit::Usage => {
            return vec![Finding::fail(BUDGET, failure.cause, ADDRESS_HINT)];
        }
        Err(failure) => return vec![Finding::warn(BUDGET, failure.cause, ADDRESS_HINT)],
    };
    match page {
        Some(page) if page.in_session || page.count > 0 => findings(page),
        Some(_) => vec![without_session(args).await],
        None => {
            let detail = format!("{url} is not the admin address of an agent");
            vec![Finding::warn(BUDGET, detail, ADDRESS_HINT)]
        }
    }
}

/// Reports whether an agent without a session should have one. An agent that stands by is ready, and an agent that cannot work is
/// not.
async fn without_session(args: &CheckArgs) -> Finding {
    let asked = ask_agent(&args.agent, READY_PATH, None, args.server.timeout).await;
    let not_ready = match asked {
        Ok((StatusCode::OK, _)) => {
            let detail = "this agent stands by: only the agent that leads acts and holds";
            return Finding::ok(BUDGET, detail);
        }
        Ok((_, said)) => one_line(String::from_utf8_lossy(&said).trim()),
        Err(failure) => failure.cause,
    };
    let detail = format!("this agent has no session, so it does not act: {not_ready}");
    Finding::warn(BUDGET, detail, "see its log for what prevents a session")
}

fn findings(page: HoldsPage) -> Vec<Finding> {
    let HoldsPage { count, holds, .. } = page;
    if count == 0 {
        return vec![Finding::ok(BUDGET, "holds nothing")];
    }
    let line = |hold: &HeldScope| Finding::fail(BUDGET, &hold.message, &hold.resume);
    let mut findings: Vec<_> = holds.iter().take(LINES_MAX).map(line).collect();
    let others = count.saturating_sub(findings.len());
    if others > 0 {
        let detail = format!("{others} more ReplicaSets or namespaces are held");
        findings.push(Finding::fail(BUDGET, detail, "decree resume --all"));
    }
    findings
}

/// `None` from an agent that does not say, if [`budget`] reports on the agent.
async fn history(args: &CheckArgs) -> Option<Finding> {
    let answer = ask_agent(&args.agent, HISTORY_PATH, None, args.server.timeout).await;
    let page = match answer {
        Ok((StatusCode::OK, answer)) => serde_json::from_slice(&answer).ok(),
        _ => None,
    };
    match page {
        Some(page) => Some(regression(&page)),
        None if args.asks_for(Section::Agent) => None,
        None => {
            let detail = format!("{} does not say whether versions went back", args.agent);
            Some(Finding::fail(HISTORY, detail, ADDRESS_HINT))
        }
    }
}

fn regression(page: &HistoryPage) -> Finding {
    let is_recent = |it: &&Regression| it.seconds_ago < SHOWN_FOR.as_secs();
    let Some(latest) = page.went_back.iter().find(is_recent) else {
        return Finding::ok(HISTORY, "versions have not gone back within the last hour");
    };
    let Regression {
        kind,
        from,
        to,
        seconds_ago,
    } = latest;
    let ago = age::human(Duration::from_secs(*seconds_ago));
    let detail = format!(
        "the resource versions of {kind} went back from {from} to {to}, {ago} ago: {MEANING}"
    );
    let hint = "if nobody restored it, look at where the address of the API server leads";
    Finding::warn(HISTORY, detail, hint)
}

#[cfg(test)]
mod tests {
    use axum::{Json, Router, routing::get};
    use clap::Parser;
    use tokio::net::TcpListener;

    use super::{super::finding::Grade, *};

    fn page(in_session: bool, count: usize) -> HoldsPage {
        let hold = HeldScope {
            operation: "delete".into(),
            scope: "cluster".into(),
            namespace: None,
            name: None,
            since: "2026-05-01T12:00:00Z".into(),
            message: "deletes in the cluster are held".into(),
            resume: "decree resume --all".into(),
        };
        HoldsPage {
            in_session,
            count,
            holds: vec![hold; count.min(100)],
        }
    }

    fn grades(page: HoldsPage) -> Vec<Grade> {
        findings(page).iter().map(|finding| finding.grade).collect()
    }

    #[test]
    fn holds_are_failures() {
        assert_eq!(grades(page(true, 0)), [Grade::Ok]);
        assert_eq!(grades(page(false, 1)), [Grade::Fail]);
        let many = findings(page(true, 500));
        assert_eq!(many.len(), LINES_MAX + 1);
        assert_eq!(many[0].hint, "decree resume --all");
        let last = &many[LINES_MAX].detail;
        assert_eq!(last, "490 more ReplicaSets or namespaces are held");
    }

    /// `decree check` as typed.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CheckArgs,
    }

    /// The findings for an agent without a session that answers `/readyz` with this status.
    async fn found_without_session(ready: StatusCode) -> Vec<Finding> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let routes = Router::new()
            .route(HOLDS_PATH, get(|| async { Json(page(false, 0)) }))
            .route(
                READY_PATH,
                get(move || async move { (ready, "no session") }),
            );
        let serving = tokio::spawn(async { axum::serve(listener, routes).await });
        let url = format!("http://{address}");
        let line = Line::parse_from(["check", "--agent", &url]);
        let found = budget(&line.args).await;
        serving.abort();
        found
    }

    #[tokio::test]
    async fn agent_without_a_session_is_well_if_it_stands_by() {
        let standing_by = found_without_session(StatusCode::OK).await;
        assert_eq!(standing_by.len(), 1);
        assert_eq!(standing_by[0].grade, Grade::Ok);
        assert!(standing_by[0].detail.contains("stands by"));
        let cut_off = found_without_session(StatusCode::SERVICE_UNAVAILABLE).await;
        assert_eq!(cut_off[0].grade, Grade::Warn);
        assert!(cut_off[0].detail.ends_with("does not act: no session"));
    }

    #[tokio::test]
    async fn history_alone_is_not_passed_over() {
        let line = ["check", "--agent=http://127.0.0.1:1", "--only=history"];
        let found = check(&Line::parse_from(line).args).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].grade, Grade::Fail);
        let both = line.into_iter().chain(["--only=agent"]);
        let found = check(&Line::parse_from(both).args).await;
        assert_eq!(found.len(), 1, "the agent is reported once");
    }

    fn history_page(seconds_ago: u64) -> HistoryPage {
        let regression = Regression {
            kind: "pods".into(),
            from: 1_723,
            to: 208,
            seconds_ago,
        };
        HistoryPage {
            went_back: vec![regression],
        }
    }

    #[test]
    fn versions_that_went_back_are_to_be_looked_at_for_an_hour() {
        let found = regression(&history_page(59));
        assert_eq!(found.grade, Grade::Warn);
        let said = "the resource versions of pods went back from 1723 to 208, 59s ago";
        assert!(found.detail.starts_with(said), "{}", found.detail);
        assert_eq!(regression(&history_page(3_600)).grade, Grade::Ok);
        assert_eq!(regression(&HistoryPage::default()).grade, Grade::Ok);
    }
}

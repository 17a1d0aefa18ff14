//! The budget of the agent: does it hold anything?

use decree_agent::{HOLDS_PATH, HeldScope, HoldsPage};
use http::StatusCode;

use super::{finding::Finding, section::Section};
use crate::{agent, args::CheckArgs, exit::Exit};

const CHECK: &str = "budget";
/// How many holds have a line of their own.
const LINES_MAX: usize = 10;

/// Looks at what the agent holds.
pub(super) async fn check(args: &CheckArgs) -> Vec<Finding> {
    let url = &args.agent;
    if url == "off" || !args.asks_for(Section::Agent) {
        return Vec::new();
    }
    let hint = "set the admin address of decree-agent with --agent, or --agent off";
    let page = match agent::ask(url, HOLDS_PATH, None, args.server.timeout).await {
        Ok((StatusCode::OK, answer)) => serde_json::from_slice(&answer).ok(),
        Ok(_) => None,
        Err(failure) if failure.exit == Exit::Usage => {
            return vec![Finding::fail(CHECK, failure.cause, hint)];
        }
        Err(failure) => return vec![Finding::warn(CHECK, failure.cause, hint)],
    };
    match page {
        Some(page) => findings(page),
        None => {
            let detail = format!("{url} is not the admin address of an agent");
            vec![Finding::warn(CHECK, detail, hint)]
        }
    }
}

fn findings(page: HoldsPage) -> Vec<Finding> {
    let HoldsPage {
        in_session,
        count,
        holds,
    } = page;
    if count == 0 && !in_session {
        let detail = "this agent has no session: it holds nothing";
        return vec![Finding::warn(CHECK, detail, "ask the agent that leads")];
    }
    if count == 0 {
        return vec![Finding::ok(CHECK, "holds nothing")];
    }
    let line = |hold: &HeldScope| Finding::fail(CHECK, &hold.message, &hold.resume);
    let mut findings: Vec<_> = holds.iter().take(LINES_MAX).map(line).collect();
    let others = count.saturating_sub(findings.len());
    if others > 0 {
        let detail = format!("{others} more ReplicaSets or namespaces are held");
        findings.push(Finding::fail(CHECK, detail, "decree resume --all"));
    }
    findings
}

#[cfg(test)]
mod tests {
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
    fn holds_are_failures_and_an_agent_that_stands_by_says_nothing_of_others() {
        assert_eq!(grades(page(true, 0)), [Grade::Ok]);
        assert_eq!(grades(page(false, 0)), [Grade::Warn]);
        assert_eq!(grades(page(false, 1)), [Grade::Fail]);
        let many = findings(page(true, 500));
        assert_eq!(many.len(), LINES_MAX + 1);
        assert_eq!(many[0].hint, "decree resume --all");
        let last = &many[LINES_MAX].detail;
        assert_eq!(last, "490 more ReplicaSets or namespaces are held");
    }
}

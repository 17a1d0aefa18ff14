//! What the admin port of the agent tells: whether its budget holds anything.

use decree_agent::{HOLDS_PATH, HoldsPage};
use decree_core::wording::count;
use http::StatusCode;

use super::{Finding, Section};
use crate::{args::CheckArgs, exit::Exit, http::ask_agent, page::one_line};

const BUDGET: &str = "budget";
const ADDRESS_HINT: &str = "set the admin address of decree-agent with --agent, or --agent off";
const READY_PATH: &str = "/readyz";
/// The maximum number of holds with a separate line.
const LINES_MAX: usize = 10;

pub(super) async fn check(args: &CheckArgs) -> Option<Finding> {
    let url = &args.agent;
    if url == "off" || !args.asks_for(Section::Agent) {
        return None;
    }
    let page = match ask_agent(url, HOLDS_PATH, args.server.timeout).await {
        Ok((StatusCode::OK, answer)) => serde_json::from_slice::<HoldsPage>(&answer).ok(),
        Ok(_) => None,
        Err(failure) if failure.exit == Exit::Usage => {
            return Some(Finding::fail(BUDGET, failure.cause, ADDRESS_HINT));
        }
        Err(failure) => return Some(Finding::warn(BUDGET, failure.cause, ADDRESS_HINT)),
    };
    Some(match page {
        Some(page) if page.in_session || page.count > 0 => held(&page),
        Some(_) => without_session(args).await,
        None => {
            let detail = format!("{url} is not the admin address of an agent");
            Finding::warn(BUDGET, detail, ADDRESS_HINT)
        }
    })
}

/// Reports whether an agent without a session should have one. An agent that stands by is ready, and an agent that cannot work is
/// not.
async fn without_session(args: &CheckArgs) -> Finding {
    let asked = ask_agent(&args.agent, READY_PATH, args.server.timeout).await;
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

/// Reports what the budget holds: a line for each hold, which names its `decree resume`.
fn held(page: &HoldsPage) -> Finding {
    if page.count == 0 {
        return Finding::ok(BUDGET, "holds nothing");
    }
    let mut lines = vec![count(page.count, "hold").to_string()];
    let named = page.holds.iter().take(LINES_MAX);
    lines.extend(named.map(|hold| hold.message.clone()));
    let others = page.count.saturating_sub(LINES_MAX.min(page.holds.len()));
    if others > 0 {
        lines.push(format!("and {others} more"));
    }
    let hint = match page.holds.as_slice() {
        [hold] => hold.resume.clone(),
        _ => "all of them: decree resume --all".to_owned(),
    };
    Finding::fail(BUDGET, lines.join("\n"), hint)
}

#[cfg(test)]
mod tests {
    use axum::{Json, Router, routing::get};
    use clap::Parser;
    use decree_agent::HeldScope;
    use tokio::net::TcpListener;

    use super::{super::Grade, *};

    fn page(in_session: bool, holds: usize, count: usize) -> HoldsPage {
        let hold = |number| HeldScope {
            operation: "delete".into(),
            scope: "replica set".into(),
            namespace: Some("shop".into()),
            name: Some(format!("web-{number}")),
            since: "2026-05-01T12:00:00Z".into(),
            message: format!("deletes in replica set shop/web-{number} are held"),
            resume: format!("decree resume shop/web-{number}"),
        };
        HoldsPage {
            in_session,
            count,
            holds: (0..holds).map(hold).collect(),
        }
    }

    #[test]
    fn holds_are_one_failure_with_a_line_for_each() {
        assert_eq!(held(&page(true, 0, 0)).grade, Grade::Ok);
        let one = held(&page(false, 1, 1));
        assert_eq!(one.grade, Grade::Fail);
        let lines = "1 hold\ndeletes in replica set shop/web-0 are held";
        assert_eq!(
            (&*one.detail, &*one.hint),
            (lines, "decree resume shop/web-0")
        );
        let many = held(&page(true, 32, 500));
        let lines: Vec<_> = many.detail.lines().collect();
        assert_eq!((lines.len(), lines[0]), (LINES_MAX + 2, "500 holds"));
        assert_eq!(lines[LINES_MAX + 1], "and 490 more");
        assert_eq!(many.hint, "all of them: decree resume --all");
    }

    /// `decree check` as typed.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CheckArgs,
    }

    /// The finding for an agent without a session that answers `/readyz` with this status.
    async fn found_without_session(ready: StatusCode) -> Finding {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let routes = Router::new()
            .route(HOLDS_PATH, get(|| async { Json(page(false, 0, 0)) }))
            .route(
                READY_PATH,
                get(move || async move { (ready, "no session") }),
            );
        let serving = tokio::spawn(async { axum::serve(listener, routes).await });
        let url = format!("http://{address}");
        let line = Line::parse_from(["check", "--agent", &url]);
        let found = check(&line.args).await;
        serving.abort();
        found.expect("it is checked")
    }

    #[tokio::test]
    async fn agent_without_a_session_is_well_if_it_stands_by() {
        let standing_by = found_without_session(StatusCode::OK).await;
        assert_eq!(standing_by.grade, Grade::Ok);
        assert!(standing_by.detail.contains("stands by"));
        let cut_off = found_without_session(StatusCode::SERVICE_UNAVAILABLE).await;
        assert_eq!(cut_off.grade, Grade::Warn);
        assert!(cut_off.detail.ends_with("does not act: no session"));
    }
}

//! What the admin port of the agent tells: whether its budget holds anything.

use http::StatusCode;

use super::{Finding, Section};
use crate::{args::CheckArgs, exit::Exit, http::ask_agent, page::one_line};

const BUDGET: &str = "budget";
const ADDRESS_HINT: &str = "set the admin address of decree-agent with --agent, or --agent off";
const HELD_HINT: &str =
    "decree get replicasets shows which, and decree explain why; then: decree resume";

pub(super) async fn check(args: &CheckArgs) -> Option<Finding> {
    let url = &args.agent;
    if url == "off" || !args.asks_for(Section::Agent) {
        return None;
    }
    let page = match ask_agent(url, "/metrics", args.server.timeout).await {
        Ok((_, page)) => page,
        Err(failure) if failure.exit == Exit::Usage => {
            return Some(Finding::fail(BUDGET, failure.cause, ADDRESS_HINT));
        }
        Err(failure) => return Some(Finding::warn(BUDGET, failure.cause, ADDRESS_HINT)),
    };
    let page = String::from_utf8_lossy(&page);
    Some(match held(&page) {
        None => {
            let detail = format!("{url} is not the admin address of an agent");
            Finding::warn(BUDGET, detail, ADDRESS_HINT)
        }
        Some(held) if !held.is_empty() => Finding::fail(BUDGET, held.join("\n"), HELD_HINT),
        Some(_) if page.contains("\ndecree_agent_session_open 1\n") => {
            Finding::ok(BUDGET, "holds nothing")
        }
        Some(_) => without_session(args).await,
    })
}

/// What the budget holds, by the metrics of its agent; `None` for the page of another program.
fn held(metrics: &str) -> Option<Vec<String>> {
    let prefix = "decree_agent_budget_held{";
    let gauges = metrics.lines().filter_map(|it| it.strip_prefix(prefix));
    let mut gauges = gauges.peekable();
    gauges.peek()?;
    let held = gauges.filter(|gauge| !gauge.ends_with("} 0"));
    let held = held.map(|gauge| match gauge.split('"').collect::<Vec<_>>()[..] {
        [_, scope, _, operation, number] => {
            let number = number.trim_start_matches("} ");
            format!("{operation}s are held, scope {scope}: {number}")
        }
        _ => format!("held: {gauge}"),
    });
    Some(held.collect())
}

/// Reports whether an agent without a session should have one. An agent that stands by is ready, and an agent that cannot work is
/// not.
async fn without_session(args: &CheckArgs) -> Finding {
    let asked = ask_agent(&args.agent, "/readyz", args.server.timeout).await;
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

#[cfg(test)]
mod tests {
    use axum::{Router, routing::get};
    use clap::Parser;
    use decree_agent::Metrics;
    use prometheus_client::{encoding::text, registry::Registry};
    use tokio::net::TcpListener;

    use super::{super::Grade, *};

    /// The metrics of an agent without a session that holds nothing.
    fn metrics() -> String {
        let (mut registry, mut page) = (Registry::default(), String::new());
        Metrics::default().register(&mut registry);
        text::encode(&mut page, &registry).expect("it can be written");
        page
    }

    #[test]
    fn scopes_that_are_held_are_told_with_their_number() {
        let none = metrics();
        assert_eq!(held(&none), Some(Vec::new()));
        let gauge = r#"{scope="replicaset",operation="delete"} "#;
        let one = none.replace(&format!("{gauge}0"), &format!("{gauge}12"));
        let said = "deletes are held, scope replicaset: 12".to_owned();
        assert_eq!(held(&one), Some(vec![said]));
        let of_later = r#"decree_agent_budget_held{scope="namespace"} 3"#;
        let said = r#"held: scope="namespace"} 3"#.to_owned();
        assert_eq!(held(of_later), Some(vec![said]), "nothing held is left out");
        assert_eq!(held("decree_sessions 1\n"), None);
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
            .route("/metrics", get(|| async { metrics() }))
            .route("/readyz", get(move || async move { (ready, "no session") }));
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

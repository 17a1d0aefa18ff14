//! What the admin port of the agent tells: whether its budget holds anything.

use std::collections::BTreeMap;

use decree_agent::{HOLDS_PATH, HeldScope, HoldsPage};
use http::StatusCode;
use server_core::wording::count;

use super::{finding::Finding, section::Section};
use crate::{args::CheckArgs, exit::Exit, http::ask_agent, table::one_line};

const BUDGET: &str = "budget";
const ADDRESS_HINT: &str = "set the admin address of decree-agent with --agent, or --agent off";
const READY_PATH: &str = "/readyz";
/// The maximum number of held scopes with a separate line.
const LINES_MAX: usize = 10;

pub(super) async fn check(args: &CheckArgs) -> Vec<Finding> {
    if args.agent == "off" || !args.asks_for(Section::Agent) {
        return Vec::new();
    }
    budget(args).await
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
        Some(page) if page.in_session || page.count > 0 => vec![held(&page)],
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

/// Reports what the budget holds: a line for each ReplicaSet or cluster.
fn held(page: &HoldsPage) -> Finding {
    if page.count == 0 {
        return Finding::ok(BUDGET, "holds nothing");
    }
    let mut scopes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for hold in &page.holds {
        let HeldScope {
            operation, since, ..
        } = hold;
        let why = hold.message.split_once(": ").map_or("", |(_, why)| why);
        let (why, _) = why.split_once("; resume with: ").unwrap_or((why, ""));
        let text = format!("{operation}s since {since}: {why}");
        scopes.entry(scope(hold)).or_default().push(text);
    }
    let unnamed = page.count.saturating_sub(page.holds.len());
    let others = (scopes.len() + unnamed).saturating_sub(LINES_MAX);
    let mut lines = vec![count(page.count, "hold").to_string()];
    let named = scopes.iter().take(LINES_MAX);
    lines.extend(named.map(|(scope, holds)| format!("{scope}: {}", holds.join("; "))));
    if others > 0 {
        lines.push(format!("and {others} more"));
    }
    let hint = match (scopes.len(), page.holds.first()) {
        (1, Some(hold)) => hold.resume.clone(),
        (_, Some(hold)) => format!("all of them: decree resume --all; one: {}", hold.resume),
        (_, None) => "decree resume --all".to_owned(),
    };
    Finding::fail(BUDGET, lines.join("\n"), hint)
}

/// The place of a hold, as a person names it.
fn scope(hold: &HeldScope) -> String {
    match (&hold.namespace, &hold.name) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        _ => "the cluster".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use axum::{Json, Router, routing::get};
    use clap::Parser;
    use tokio::net::TcpListener;

    use super::{super::finding::Grade, *};

    fn hold(operation: &str, scope: [Option<&str>; 2]) -> HeldScope {
        let [namespace, name] = scope.map(|it| it.map(str::to_owned));
        HeldScope {
            operation: operation.into(),
            scope: "replica set".into(),
            namespace,
            name,
            since: "2026-05-01T12:00:00Z".into(),
            message: format!(
                "{operation}s in it are held since a time: 11 in a minute, 10 are allowed; resume with: it"
            ),
            resume: "decree resume shop/web".into(),
        }
    }

    fn page(in_session: bool, holds: Vec<HeldScope>, count: usize) -> HoldsPage {
        HoldsPage {
            in_session,
            count,
            holds,
        }
    }

    #[test]
    fn holds_are_one_failure_with_a_line_for_each_scope() {
        assert_eq!(held(&page(true, Vec::new(), 0)).grade, Grade::Ok);
        let web = [Some("shop"), Some("web")];
        let one = held(&page(
            false,
            vec![hold("delete", web), hold("create", web)],
            2,
        ));
        assert_eq!(one.grade, Grade::Fail);
        let since = "since 2026-05-01T12:00:00Z: 11 in a minute, 10 are allowed";
        let lines = format!("2 holds\nshop/web: deletes {since}; creates {since}");
        assert_eq!(
            (one.detail, one.hint),
            (lines, "decree resume shop/web".to_owned())
        );
        let mut holds = vec![hold("delete", [None, None])];
        let names: Vec<_> = (10..41).map(|it| format!("web-{it}")).collect();
        let sets = names
            .iter()
            .map(|name| hold("create", [Some("a"), Some(name)]));
        holds.extend(sets);
        let many = held(&page(true, holds, 500));
        let lines: Vec<_> = many.detail.lines().collect();
        assert_eq!((lines.len(), lines[0]), (LINES_MAX + 2, "500 holds"));
        assert_eq!(lines[LINES_MAX + 1], "and 490 more");
        assert!(
            many.detail.contains("\na/web-10: creates since "),
            "{}",
            many.detail
        );
        assert!(
            many.hint.starts_with("all of them: decree resume --all; "),
            "{}",
            many.hint
        );
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
            .route(
                HOLDS_PATH,
                get(|| async { Json(page(false, Vec::new(), 0)) }),
            )
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
}

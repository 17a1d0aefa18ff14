//! The history of the cluster: whether its versions went back recently.

use std::time::Duration;

use agent_core::history::MEANING;
use decree_agent::{HISTORY_PATH, HistoryPage, Regression};
use http::StatusCode;

use super::{finding::Finding, section::Section};
use crate::{age, agent, args::CheckArgs};

const CHECK: &str = "history";
/// The age up to which the check shows that versions went back.
const SHOWN_FOR: Duration = Duration::from_secs(60 * 60);

/// The check of the budget reports an agent that does not respond.
pub(super) async fn check(args: &CheckArgs) -> Vec<Finding> {
    let url = &args.agent;
    if url == "off" || !args.asks_for(Section::History) {
        return Vec::new();
    }
    let answer = agent::ask(url, HISTORY_PATH, None, args.server.timeout).await;
    let Ok((StatusCode::OK, answer)) = answer else {
        return Vec::new();
    };
    let page = serde_json::from_slice(&answer).ok();
    page.map(|page| vec![finding(&page)]).unwrap_or_default()
}

fn finding(page: &HistoryPage) -> Finding {
    let is_recent = |it: &&Regression| it.seconds_ago < SHOWN_FOR.as_secs();
    let Some(latest) = page.went_back.iter().find(is_recent) else {
        return Finding::ok(CHECK, "versions have not gone back within the last hour");
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
    Finding::warn(CHECK, detail, hint)
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Grade, *};

    fn page(seconds_ago: u64) -> HistoryPage {
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
        let found = finding(&page(59));
        assert_eq!(found.grade, Grade::Warn);
        let said = "the resource versions of pods went back from 1723 to 208, 59s ago";
        assert!(found.detail.starts_with(said), "{}", found.detail);
        assert_eq!(finding(&page(3_600)).grade, Grade::Ok);
        assert_eq!(finding(&HistoryPage::default()).grade, Grade::Ok);
    }
}

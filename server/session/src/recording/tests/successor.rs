//! A session that inherits the lost creates of another one.

use std::time::Duration;

use decree_core::{Account, Ledger, Span, Timestamp};

use super::{recording_after, replay};
use crate::recording::inherited;

#[test]
fn recording_has_the_lost_creates_that_its_session_inherited() {
    let mut left = Ledger::default();
    let account = Account {
        lost: 21,
        desired: 3,
        grant_at: Timestamp::from_seconds(20),
        period: Span::seconds(20),
        resumed_at: Some(Timestamp::from_seconds(-70)),
        ..Account::default()
    };
    left.insert("default".into(), "web".into(), account);
    left.insert_request("default".into(), "web".into(), "all now".into());
    let (differences, summary) = replay(&recording_after(&left, &["web"])).expect("it is whole");
    assert_eq!(differences, []);
    assert_eq!(
        summary.decisions.creates, 2,
        "3 lack, and 21 are lost instead of 20"
    );
    let ago = Duration::from_secs(1);
    assert_eq!(inherited::read(inherited::record(&left, ago)), (left, ago));
}

//! The decisions that a reader gets and misses.

use std::net::Ipv4Addr;

use tokio_stream::StreamExt;

use prometheus_client::registry::Registry;
use server_access::{Identity, Permissions};

use super::*;
use crate::{
    access::{Access, args::AccessArgs},
    metrics::Metrics,
};

fn watchers(max: usize, buffer: usize) -> Arc<Watchers> {
    Arc::new(Watchers::new(max, buffer))
}

fn watch(watchers: &Arc<Watchers>) -> Result<Watch, Refusal> {
    watch_after(watchers, "")
}

fn watch_after(watchers: &Arc<Watchers>, resume_token: &str) -> Result<Watch, Refusal> {
    let (caller, open) = viewer();
    let filter = v1::WatchDecisionsRequest {
        resume_token: resume_token.to_owned(),
        ..v1::WatchDecisionsRequest::default()
    };
    Arc::clone(watchers).watch(filter, caller, open, Refusal::SessionEnded)
}

/// A caller with all permissions, and the entry of its watch.
fn viewer() -> (Caller, (OpenStream, EndSignal)) {
    let metrics = Metrics::register(&mut Registry::default());
    let access = Access::new(&AccessArgs::default(), metrics).expect("no files");
    let everything = Permissions::unrestricted();
    let caller = Caller::new(
        Identity::Anonymous,
        Ipv4Addr::LOCALHOST.into(),
        everything,
        None,
    );
    let open = access.open_watch(&caller);
    (caller, open)
}

fn publish(watchers: &Watchers, ids: impl IntoIterator<Item = u64>) {
    let identity = Arc::new(crate::session::tests::identity("c1", 1));
    for batch_id in ids {
        let record = v1::DecisionRecord {
            batch_id,
            ..v1::DecisionRecord::default()
        };
        watchers.publish(&identity, &Arc::new(record));
    }
}

/// The batch and the number of missed decisions of the next message.
async fn next(watch: &mut Watch) -> (Option<u64>, u64) {
    let (batch, missed, _) = next_with_token(watch).await;
    (batch, missed)
}

async fn next_with_token(watch: &mut Watch) -> (Option<u64>, u64, String) {
    let message = watch.next().await.expect("open").expect("no end");
    let batch = message.decision.map(|decision| decision.batch_id);
    (batch, message.missed, message.resume_token)
}

#[tokio::test]
async fn notice_of_missed_decisions_comes_where_they_were_missed() {
    let watchers = watchers(1, 2);
    let mut watch = watch(&watchers).expect("room");
    publish(&watchers, 1..=5);
    assert_eq!(next(&mut watch).await, (Some(1), 0));
    assert_eq!(next(&mut watch).await, (Some(2), 0));
    assert_eq!(next(&mut watch).await, (None, 3));
    publish(&watchers, [6]);
    assert_eq!(next(&mut watch).await, (Some(6), 0));
}

#[tokio::test]
async fn decision_after_missed_ones_carries_their_number() {
    let watchers = watchers(1, 2);
    let mut watch = watch(&watchers).expect("room");
    publish(&watchers, 1..=4);
    assert_eq!(next(&mut watch).await, (Some(1), 0));
    publish(&watchers, [5]);
    assert_eq!(next(&mut watch).await, (Some(2), 0));
    assert_eq!(next(&mut watch).await, (Some(5), 2));
}

#[tokio::test]
async fn reader_who_may_read_no_more_is_told_at_once() {
    let watchers = watchers(1, 2);
    let (caller, (open, end_signal)) = viewer();
    let filter = v1::WatchDecisionsRequest::default();
    let watch = Arc::clone(&watchers).watch(
        filter,
        caller,
        (open, end_signal.clone()),
        Refusal::SessionEnded,
    );
    let mut watch = watch.expect("room");
    publish(&watchers, 1..=2);
    end_signal.send(server_access::Denial::TokenExpired.into());
    let status = watch.next().await.expect("open").expect_err("the end");
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn reader_that_comes_back_gets_what_came_meanwhile() {
    let watchers = watchers(3, 2);
    let mut first = watch(&watchers).expect("room");
    publish(&watchers, 1..=5);
    let (batch, _, token) = next_with_token(&mut first).await;
    assert_eq!(batch, Some(1));
    next(&mut first).await;
    let (batch, missed, after_missed) = next_with_token(&mut first).await;
    assert_eq!((batch, missed), (None, 3));
    drop(first);
    publish(&watchers, 6..=7);
    for (token, expected) in [(token, 2..=8), (after_missed, 6..=8)] {
        let mut again = watch_after(&watchers, &token).expect("all are kept");
        if *expected.start() == 2 {
            publish(&watchers, [8]);
        }
        for batch in expected {
            assert_eq!(next(&mut again).await, (Some(batch), 0));
        }
    }
}

/// The token of the first decision of another server.
async fn token_of_another_server() -> String {
    let other = watchers(1, 1);
    let mut watch = watch(&other).expect("room");
    publish(&other, [1]);
    next_with_token(&mut watch).await.2
}

#[tokio::test]
async fn token_whose_decisions_are_not_kept_is_refused() {
    let watchers = watchers(2, 1);
    let mut first = watch(&watchers).expect("room");
    publish(&watchers, [1]);
    let (_, _, token) = next_with_token(&mut first).await;
    let refused = |token: &str| {
        let refusal = watch_after(&watchers, token).err();
        refusal.map(|refusal| refusal.reason())
    };
    assert_eq!(refused("made up"), Some("INVALID_FIELD"));
    // Another server has another place for the same number.
    let other = token_of_another_server().await;
    assert_eq!(refused(&other), Some("RESUME_TOKEN_EXPIRED"));
    publish(&watchers, 2..=10);
    assert_eq!(refused(&token), None);
    // More than the server keeps, whatever the size of one.
    publish(&watchers, 11..=20_000);
    assert_eq!(refused(&token), Some("RESUME_TOKEN_EXPIRED"));
}

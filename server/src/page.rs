//! Pagination of lists, with tokens that the next request returns.

use std::cmp::Ordering;

use decree_api::v1;
use prost::Message;
use serde_json::json;
use server_session::{SessionIdentity, wire::Fault};

use crate::error::Refusal;

const SIZE_DEFAULT: usize = 500;
const SIZE_MAX: usize = 1_000;

/// The position of an item in its list, by texts that are compared one after another: of a ReplicaSet, its cluster, the cluster's uid, its
/// namespace and its name. The default is before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Page([String; 4]);

/// The size of a page: at most 1,000, whatever larger number was asked for.
pub(crate) fn size(asked: i32) -> Result<usize, Refusal> {
    match usize::try_from(asked) {
        Ok(0) => Ok(SIZE_DEFAULT),
        Ok(size) => Ok(size.min(SIZE_MAX)),
        Err(_) => {
            let description = format!("{asked} must be 0 or more");
            Err(Refusal::field("page_size", Fault::Range, description))
        }
    }
}

/// Sorts items, and cuts a page to `limit` of them and about half a frame. The token of the next page is empty if there is none.
pub(crate) fn cut<T: Message>(
    mut found: Vec<(Page, T)>,
    limit: usize,
    frame_bytes_max: usize,
) -> (Vec<T>, String) {
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    let total = found.len();
    let mut room = frame_bytes_max / 2;
    let mut last = String::new();
    let mut items = Vec::new();
    for (page, item) in found.into_iter().take(limit) {
        let size = item.encoded_len();
        if size > room && !items.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        last = page.token();
        items.push(item);
    }
    if items.len() == total {
        last.clear();
    }
    (items, last)
}

impl Page {
    /// Parses a token. The empty token is the beginning.
    pub(crate) fn parse(token: &str) -> Result<Self, Refusal> {
        if token.is_empty() {
            return Ok(Self::default());
        }
        let parts = serde_json::from_str(token).map_err(|_| {
            let description = "must be the next_page_token of the page before, as it was";
            Refusal::field("page_token", Fault::Text, description)
        });
        parts.map(Self)
    }

    pub(crate) fn of(identity: &SessionIdentity, object: Option<&v1::ObjectRef>) -> Self {
        let (namespace, name) = object.map_or(("", ""), |it| (&it.namespace, &it.name));
        let texts = [identity.cluster(), &identity.cluster_uid, namespace, name];
        Self(texts.map(str::to_owned))
    }

    /// The position of a session: by cluster and shard.
    pub(crate) fn of_session(identity: &SessionIdentity) -> Self {
        let texts = [identity.cluster(), &identity.cluster_uid, &identity.shard];
        let [cluster, uid, shard] = texts.map(str::to_owned);
        Self([cluster, uid, shard, String::new()])
    }

    /// The position of a difference, the newest first. `number` sets it apart from others of the same time and ReplicaSet.
    pub(crate) fn of_difference(found: &v1::Difference, number: usize) -> Self {
        let time = found.detect_time.unwrap_or_default();
        let (seconds, nanos) = (i64::MAX - time.seconds.max(0), i32::MAX - time.nanos);
        let set = found.replica_set.as_ref();
        let set = set.map_or_else(String::new, |it| format!("{}/{}", it.namespace, it.name));
        let age = format!("{seconds:019}.{nanos:010}");
        Self([age, found.cluster_uid.clone(), set, format!("{number:09}")])
    }

    /// The namespace and name after which the page continues in a cluster; `None` if the cluster is done.
    pub(crate) fn after_in(&self, identity: &SessionIdentity) -> Option<(String, String)> {
        let [cluster, uid, namespace, name] = &self.0;
        match [identity.cluster(), &identity.cluster_uid].cmp(&[cluster.as_str(), uid.as_str()]) {
            Ordering::Less => None,
            Ordering::Equal => Some((namespace.clone(), name.clone())),
            Ordering::Greater => Some(Default::default()),
        }
    }

    fn token(&self) -> String {
        json!(self.0).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_leads_back_to_its_place() {
        let page = Page(["north / east:1", "a/b:c", "default", "web"].map(str::to_owned));
        assert_eq!(Page::parse(&page.token()).expect("its own token"), page);
    }

    #[test]
    fn foreign_tokens_are_refused() {
        for token in ["x", "{}", "[]", "[\"a\", \"b\", \"c\", 1]"] {
            let refusal = Page::parse(token).expect_err(token);
            assert_eq!(refusal.reason(), "INVALID_FIELD");
        }
    }

    #[test]
    fn differences_are_in_pages_from_the_newest_to_the_oldest() {
        let at = |seconds, nanos, name: &str| v1::Difference {
            detect_time: Some(prost_types::Timestamp { seconds, nanos }),
            replica_set: Some(v1::ObjectRef {
                name: name.to_owned(),
                ..v1::ObjectRef::default()
            }),
            ..v1::Difference::default()
        };
        let order = [
            (at(1_000, 0, "a"), 0),
            (at(999, 10, "a"), 0),
            (at(999, 10, "a"), 1),
            (at(999, 10, "b"), 0),
            (at(999, 9, "a"), 0),
            (at(9, 0, "a"), 0),
            (v1::Difference::default(), 0),
        ];
        let pages = order.map(|(found, number)| Page::of_difference(&found, number));
        assert!(pages.is_sorted() && pages[0] > Page::default(), "{pages:?}");
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(size(0).expect("default"), SIZE_DEFAULT);
        assert_eq!(size(1_000).expect("the most"), 1_000);
        assert_eq!(size(1_001).expect("the most"), 1_000);
        assert!(size(-1).is_err());
    }
}

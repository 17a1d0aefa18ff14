//! Pagination of ReplicaSets, with tokens that the next request returns.

use decree::v1;
use prost::Message;
use serde_json::json;
use server_session::{SessionIdentity, wire::Fault};

use crate::error::Refusal;

const SIZE_DEFAULT: usize = 500;
const SIZE_MAX: i32 = 1_000;

/// The position of a ReplicaSet in the order of cluster, namespace and name. The default is before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Page {
    cluster: String,
    cluster_uid: String,
    namespace: String,
    name: String,
}

pub(crate) fn size(asked: i32) -> Result<usize, Refusal> {
    match usize::try_from(asked) {
        Ok(0) => Ok(SIZE_DEFAULT),
        Ok(size) if asked <= SIZE_MAX => Ok(size),
        Ok(_) | Err(_) => {
            let description = format!("{asked} must be 0 to {SIZE_MAX}");
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
        let [cluster, cluster_uid, namespace, name] = parts?;
        Ok(Self {
            cluster,
            cluster_uid,
            namespace,
            name,
        })
    }

    pub(crate) fn of(identity: &SessionIdentity, object: Option<&v1::ObjectRef>) -> Self {
        let (namespace, name) = object.map_or(("", ""), |it| (&it.namespace, &it.name));
        Self {
            cluster: identity.cluster().to_owned(),
            cluster_uid: identity.cluster_uid.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The namespace and name after which the page continues in a cluster; `None` if the cluster is done.
    pub(crate) fn after_in(&self, identity: &SessionIdentity) -> Option<(String, String)> {
        let cluster = (identity.cluster(), identity.cluster_uid.as_str());
        let here = (self.cluster.as_str(), self.cluster_uid.as_str());
        if cluster < here {
            return None;
        }
        let after = (self.namespace.clone(), self.name.clone());
        Some(if cluster == here {
            after
        } else {
            Default::default()
        })
    }

    fn token(&self) -> String {
        json!([self.cluster, self.cluster_uid, self.namespace, self.name]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_leads_back_to_its_place() {
        let page = Page {
            cluster: "north / east:1".into(),
            cluster_uid: "a/b:c".into(),
            namespace: "default".into(),
            name: "web".into(),
        };
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
    fn sizes_are_bounded() {
        assert_eq!(size(0).expect("default"), SIZE_DEFAULT);
        assert_eq!(size(1_000).expect("the most"), 1_000);
        assert!(size(1_001).is_err() && size(-1).is_err());
    }
}

//! All pages of an answer, joined as one.

use decree::v1::{self, simulate_cluster_request::Change};
use prost::Message;

use crate::{
    exit::{Exit, Failure},
    server::Server,
    stale,
};

/// The number of ReplicaSets in a request.
const PAGE_SIZE: i32 = 1_000;
/// The maximum size of all pages of one answer, encoded. A page counts as this many bytes more, so their number has a limit too.
const BYTES_MAX: usize = 1 << 30;
const PAGE_COST: usize = 1 << 16;
const HINT: &str = "check that it is a server of Decree; ask for one namespace with -n";

/// The pages received so far, and the token of the next.
#[derive(Debug, Default)]
struct Pages {
    bytes: usize,
    /// The token of the next request; empty for the first.
    token: String,
}

/// Requests the ReplicaSets of a namespace, or of all for the empty text: at least `most`, or to the last page. Fails if the server sends
/// pages without end.
pub(crate) async fn replica_sets(
    server: &Server,
    cluster: &str,
    namespace: &str,
    most: usize,
) -> Result<v1::ListReplicaSetsResponse, Failure> {
    let mut client = server.inspection();
    let (mut pages, mut all) = (Pages::default(), v1::ListReplicaSetsResponse::default());
    loop {
        let request = v1::ListReplicaSetsRequest {
            cluster: cluster.to_owned(),
            namespace: namespace.to_owned(),
            page_size: PAGE_SIZE,
            page_token: pages.token.clone(),
        };
        let page = server.answer(client.list_replica_sets(request).await)?;
        let has_next = pages.add(&page, &page.next_page_token)?;
        all.replica_sets.extend(page.replica_sets);
        all.next_page_token = page.next_page_token;
        stale::add(&mut all.stale_views, page.stale_views);
        if !has_next || all.replica_sets.len() >= most {
            return Ok(all);
        }
    }
}

/// Requests the effect of a change of a cluster. Fails if the server sends pages without end.
pub(crate) async fn effect(
    server: &Server,
    cluster: &str,
    change: &Change,
) -> Result<v1::SimulateClusterResponse, Failure> {
    let mut client = server.inspection();
    let (mut pages, mut all) = (Pages::default(), v1::SimulateClusterResponse::default());
    loop {
        let request = v1::SimulateClusterRequest {
            cluster: cluster.to_owned(),
            change: Some(change.clone()),
            page_size: PAGE_SIZE,
            page_token: pages.token.clone(),
        };
        let page = server.answer(client.simulate_cluster(request).await)?;
        let has_next = pages.add(&page, &page.next_page_token)?;
        all.replica_sets.extend(page.replica_sets);
        all.quota = all.quota.or(page.quota);
        stale::add(&mut all.stale_views, page.stale_views);
        if !has_next {
            return Ok(all);
        }
    }
}

impl Pages {
    /// Counts a page. Returns whether another page follows.
    fn add(&mut self, page: &impl Message, next_token: &str) -> Result<bool, Failure> {
        self.bytes += page.encoded_len() + PAGE_COST;
        if self.bytes > BYTES_MAX {
            let failure = Failure::new(Exit::Refused, "the server sends pages without end");
            return Err(failure.hint(HINT));
        }
        next_token.clone_into(&mut self.token);
        Ok(!next_token.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_end_are_refused() {
        let page = v1::ListReplicaSetsResponse::default();
        for (bytes, next_token, expected) in [
            (0, "b", Some(true)),
            (0, "", Some(false)),
            (BYTES_MAX - PAGE_COST, "b", Some(true)),
            (BYTES_MAX - PAGE_COST + 1, "b", None),
        ] {
            let mut pages = Pages {
                bytes,
                token: "a".to_owned(),
            };
            assert_eq!(pages.add(&page, next_token).ok(), expected);
        }
    }
}

//! All pages of an answer, joined as one.

use decree::v1;
use prost::Message;

use crate::{
    exit::{Exit, Failure},
    server::Server,
};

/// The number of ReplicaSets in a request.
const PAGE_SIZE: i32 = 1_000;
/// The maximum number of pages of one answer; a server has fewer than that many thousands of ReplicaSets.
const PAGES_MAX: usize = 10_000;
/// The maximum size of all pages of one answer, encoded.
const BYTES_MAX: usize = 1 << 30;

/// The received pages.
#[derive(Debug, Default)]
struct Pages {
    all: v1::ListReplicaSetsResponse,
    count: usize,
    bytes: usize,
}

/// Requests the ReplicaSets of a namespace, or of all for the empty text, to the last page.
///
/// # Errors
/// If the server refuses, or sends pages without end.
pub(crate) async fn replica_sets(
    server: &Server,
    cluster: &str,
    namespace: &str,
) -> Result<v1::ListReplicaSetsResponse, Failure> {
    replica_sets_until(server, cluster, namespace, |_| false).await
}

/// Requests the pages until `is_enough` holds.
///
/// # Errors
/// If the server refuses, or sends pages without end.
pub(crate) async fn replica_sets_until(
    server: &Server,
    cluster: &str,
    namespace: &str,
    mut is_enough: impl FnMut(&[v1::ReplicaSetSummary]) -> bool,
) -> Result<v1::ListReplicaSetsResponse, Failure> {
    let mut client = server.inspection();
    let mut pages = Pages::default();
    loop {
        let request = v1::ListReplicaSetsRequest {
            cluster: cluster.to_owned(),
            namespace: namespace.to_owned(),
            page_size: PAGE_SIZE,
            page_token: pages.all.next_page_token.clone(),
        };
        let answer = client.list_replica_sets(request).await;
        let page = answer.map_err(|status| server.failure(&status))?;
        let page = page.into_inner();
        let is_last = is_enough(&page.replica_sets);
        pages.add(page)?;
        if is_last || pages.all.next_page_token.is_empty() {
            return Ok(pages.all);
        }
    }
}

// === impl Pages ===

impl Pages {
    fn add(&mut self, page: v1::ListReplicaSetsResponse) -> Result<(), Failure> {
        self.count += 1;
        self.bytes += page.encoded_len();
        let has_next = !page.next_page_token.is_empty();
        let is_same = has_next && page.next_page_token == self.all.next_page_token;
        if is_same || (has_next && self.count == PAGES_MAX) || self.bytes > BYTES_MAX {
            let cause = format!(
                "the server sends pages without end: {} of them, with {} ReplicaSets",
                self.count,
                self.all.replica_sets.len() + page.replica_sets.len(),
            );
            let hint = "check that it is a server of Decree; ask for one namespace with -n";
            return Err(Failure::new(Exit::Refused, cause).hint(hint));
        }
        self.all.replica_sets.extend(page.replica_sets);
        self.all.next_page_token = page.next_page_token;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(token: &str, name_bytes: usize) -> v1::ListReplicaSetsResponse {
        let set = v1::ReplicaSetSummary {
            cluster: "x".repeat(name_bytes),
            ..v1::ReplicaSetSummary::default()
        };
        v1::ListReplicaSetsResponse {
            replica_sets: vec![set],
            next_page_token: token.to_owned(),
        }
    }

    #[test]
    fn pages_without_end_are_refused() {
        let mut pages = Pages::default();
        for number in 1..PAGES_MAX {
            pages.add(page(&number.to_string(), 1)).expect("a page");
        }
        pages.add(page("", 1)).expect("the last page");
        assert_eq!(pages.all.replica_sets.len(), PAGES_MAX);
        let mut pages = Pages::default();
        pages.add(page("a", 1)).expect("a page");
        assert!(pages.add(page("a", 1)).is_err());
        let mut pages = Pages {
            count: PAGES_MAX - 1,
            ..Pages::default()
        };
        assert!(pages.add(page("more", 1)).is_err());
        let mut pages = Pages {
            bytes: BYTES_MAX - 100,
            ..Pages::default()
        };
        assert!(pages.add(page("more", 200)).is_err());
    }
}

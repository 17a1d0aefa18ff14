//! All pages of an answer, joined as one.

use decree_api::v1::{self, simulate_cluster_request::Change};

use crate::{
    exit::Failure,
    paging::{PAGE_SIZE, Pages},
    server::Server,
    stale,
};

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
            shard: String::new(),
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
            shard: String::new(),
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

/// Requests the differences that a request asks for. Fails if the server sends pages without end.
pub(crate) async fn differences(
    server: &Server,
    request: v1::ListDifferencesRequest,
) -> Result<v1::ListDifferencesResponse, Failure> {
    let mut client = server.inspection();
    let (mut pages, mut all, mut stale_views) = (Pages::default(), Vec::new(), Vec::new());
    loop {
        let request = v1::ListDifferencesRequest {
            page_size: PAGE_SIZE,
            page_token: pages.token.clone(),
            ..request.clone()
        };
        let page = server.answer(client.list_differences(request).await)?;
        let has_next = pages.add(&page, &page.next_page_token)?;
        all.extend(page.differences);
        stale::add(&mut stale_views, page.stale_views);
        if !has_next {
            return Ok(v1::ListDifferencesResponse {
                differences: all,
                stale_views,
                ..page
            });
        }
    }
}

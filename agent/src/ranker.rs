//! Deletion costs from a service of the operator, `decree.v1.ScaleInService`: one call for all pods of a question.

use std::{collections::HashMap, time::Duration};

use agent_core::asking::NO_ANSWER;
use decree_api::v1::{self, scale_in_service_client::ScaleInServiceClient};
use service::{excerpt, transport::Connector};
use tokio::time;
use tonic::{Code, Request};

use crate::uplink;

/// The longest response. One with 100 costs has less than a tenth of that.
const RESPONSE_BYTES_MAX: usize = 256 << 10;

/// Asks the service. Returns a cost for each pod, or why it has none.
pub(crate) async fn rank(
    service: Option<Connector>,
    request: v1::RankRequest,
    timeout: Duration,
) -> Vec<Result<i32, String>> {
    let pods = request.pods.clone();
    let asked = time::timeout(timeout, ask(service, request, timeout)).await;
    let asked = asked.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()));
    let costs = asked.map_err(|why| excerpt(&why));
    let of = |pod: &v1::ObjectRef| match &costs {
        Ok(costs) => costs
            .get(&pod.uid)
            .cloned()
            .unwrap_or_else(|| Err("the service gave no cost".to_owned())),
        Err(why) => Err(why.clone()),
    };
    pods.iter().map(of).collect()
}

/// Returns the costs by UID of the pod.
async fn ask(
    service: Option<Connector>,
    request: v1::RankRequest,
    timeout: Duration,
) -> Result<HashMap<String, Result<i32, String>>, String> {
    let service = service.ok_or("the agent has no service")?;
    // Each question makes a new connection, so that it reaches a service that has moved or has a new certificate.
    let channel = uplink::connect(&service).await?;
    let mut client =
        ScaleInServiceClient::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX);
    let mut request = Request::new(request);
    request.set_timeout(timeout);
    let response = client.rank(request).await.map_err(|status| {
        // The transport cancels the call at its deadline.
        if matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded) {
            NO_ANSWER.to_owned()
        } else {
            uplink::said(&status)
        }
    });
    let costs = response?.into_inner().costs;
    let mut by_pod = HashMap::new();
    for v1::PodCost { uid, cost, failure } in costs {
        let cost = cost.ok_or_else(|| excerpt(&failure));
        by_pod.entry(uid).or_insert(cost);
    }
    Ok(by_pod)
}

#[cfg(test)]
mod tests;

//! Whether an agent without a session is ready: it can reach the server, and use the probe.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agent_core::take_over::{Verdict, Why};
use service::transport::Connector;
use service::{Readiness, failure::chain};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tracing::{info, warn};

use crate::{
    log::SERVER,
    uplink::{self, Proof},
};

/// The interval of health requests to the server, and of those of an agent that is not ready.
const PERIOD: Duration = Duration::from_secs(10);
const PERIOD_UNREADY: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(5);
const SERVICE: &str = "decree.v1.DecisionService";
const UNREACHED: &str = "no server can be reached";
const NO_PROBE: &str = "decree-probe cannot be read and changed";

/// Checks the server and the verdict about the probe periodically, while polled. An agent that could not work as leader is not ready, so a
/// rollout of such agents stops at the first.
pub(crate) async fn watch(
    connector: Connector,
    token: Option<PathBuf>,
    readiness: Readiness,
    verdict: watch::Receiver<Verdict>,
) {
    readiness.set(Err(UNREACHED));
    let mut reached = None;
    loop {
        let asked = timeout(ANSWER_MAX, ask(connector.clone(), token.as_deref())).await;
        let late = |_| Err("no answer in time".to_owned());
        let cause = asked.unwrap_or_else(late).err();
        let was_reached = reached.replace(cause.is_none());
        match &cause {
            Some(cause) if was_reached != Some(false) => {
                warn!(
                    peer = SERVER,
                    cause, "no server can be reached: the agent could not work if it led"
                );
            }
            None if was_reached == Some(false) => info!(peer = SERVER, "the server can be reached"),
            Some(_) | None => {}
        }
        let has_probe = !matches!(verdict.borrow().why, Some(Why::Starting | Why::Failed(_)));
        let ready = match cause {
            Some(_) => Err(UNREACHED),
            None if !has_probe => Err(NO_PROBE),
            None => Ok(()),
        };
        readiness.set(ready);
        sleep(ready.map_or(PERIOD_UNREADY, |()| PERIOD)).await;
    }
}

async fn ask(connector: Connector, token: Option<&Path>) -> Result<(), String> {
    let proof = Proof::read(token).map_err(|error| chain(&error))?;
    let channel = uplink::connect(&connector).await?;
    let request = proof.request(HealthCheckRequest {
        service: SERVICE.to_owned(),
    });
    let status = HealthClient::new(channel).check(request).await;
    let status = status.map_err(|status| uplink::said(&status))?;
    if status.get_ref().status() == ServingStatus::Serving {
        Ok(())
    } else {
        Err("the server does not serve".to_owned())
    }
}

//! A second cluster with another controller, and a server and an agent in shadow mode that watch it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use agent_fake::{ApiError, Cluster};
use decree::v1;
use decree_agent::Mode;
use runtime::ListenAddr;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::standing::Writes;
use crate::{
    exit::{Exit, Failure},
    sandbox::{
        Sandbox, Settings,
        beginning::{self, NAMESPACE, OLD},
    },
    server::Server,
};

/// The interval of requests to the server.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// The deadline for the sync of the agent with its server.
const SYNCED_WITHIN: Duration = Duration::from_secs(30);
/// The number of pods that the other controller creates instead of one.
const MADE: u64 = 2;

/// The running parts, and the request to their server.
pub(super) struct Shadowed {
    sandbox: Sandbox,
    asking: JoinHandle<Result<v1::ListDifferencesResponse, Failure>>,
}

pub(super) struct Found {
    pub(super) answer: v1::ListDifferencesResponse,
    pub(super) has_written_nothing: bool,
}

// === impl Shadowed ===

impl Shadowed {
    /// Starts everything, and lets the other controller create a pod twice. A difference counts after ten seconds, because a view
    /// that explains it may come late.
    pub(super) async fn open(seed: u64) -> Result<Self, Failure> {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let settings = Settings {
            listen: free,
            admin: free,
            agent_admin: ListenAddr::Off,
            seed,
            otlp: otlp::OtlpArgs::default(),
            budget: agent_core::budget::BudgetConfig::default(),
            is_killable: false,
        };
        let sandbox = Sandbox::open(settings, Mode::Shadow, Vec::new(), beginning::install).await?;
        let end = Instant::now() + SYNCED_WITHIN;
        while sandbox.running.synced().await?.is_none() {
            if Instant::now() >= end {
                let cause = "the server did not see the second cluster in time";
                return Err(Failure::new(Exit::No, cause));
            }
            sleep(ASK_EVERY).await;
        }
        let made = sandbox.cluster.with(make_twice);
        made.map_err(|error| Failure::new(Exit::No, error.message))?;
        let asking = tokio::spawn(ask(sandbox.running.server.client.clone()));
        Ok(Self { sandbox, asking })
    }

    /// The report with the first difference; `None` if there is none in time. Ends everything.
    pub(super) async fn found(self, within: Duration) -> Option<Result<Found, Failure>> {
        let answer = timeout(within, self.asking).await.ok()?.ok()?;
        let writes = self.sandbox.cluster.with(|cluster| Writes::of(cluster));
        let has_written_nothing = writes
            == Writes {
                creates: MADE,
                deletes: 0,
                changes: 0,
            };
        let closed = self.sandbox.close().await;
        let found = answer.map(|answer| Found {
            answer,
            has_written_nothing,
        });
        Some(closed.and(found))
    }
}

/// Asks until there is a difference.
async fn ask(server: Server) -> Result<v1::ListDifferencesResponse, Failure> {
    loop {
        let request = v1::ListDifferencesRequest::default();
        let answer = server.inspection().list_differences(request).await;
        let answer = answer.map_err(|status| server.failure(&status))?;
        let answer = answer.into_inner();
        if !answer.differences.is_empty() {
            return Ok(answer);
        }
        sleep(ASK_EVERY).await;
    }
}

/// Acts as a controller that forgets its own requests.
fn make_twice(cluster: &mut Cluster) -> Result<(), ApiError> {
    cluster.scale(NAMESPACE, OLD, 8)?;
    for suffix in ["3pvwd", "3pvwe"] {
        cluster.create(beginning::new_pod(suffix))?;
    }
    Ok(())
}

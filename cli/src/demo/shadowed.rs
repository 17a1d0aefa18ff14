//! A second cluster with another controller, and a server and an agent in shadow mode that watch it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use agent_fake::{ApiError, Cluster};
use decree::v1;
use decree_agent::Mode;
use runtime::ListenAddr;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::standing::Writes;
use crate::{
    exit::{Exit, Failure},
    sandbox::{
        AGAIN, Prepare, Sandbox, Settings,
        beginning::{self, NAMESPACE, OLD},
        poll,
    },
    server::Server,
};

/// The deadline for the sync of the agent with its server.
const SYNCED_WITHIN: Duration = Duration::from_secs(30);
/// The pods that the other controller creates instead of one.
const MADE: [&str; 2] = ["3pvwd", "3pvwe"];

/// The report with the first difference. A later report would also have the decisions that nobody executes there.
pub(super) type Asking = AbortOnDropHandle<Result<v1::ListDifferencesResponse, Failure>>;

/// Starts everything, and lets the other controller create a pod twice. Creates are compared after ten seconds without a change.
pub(super) async fn open(seed: u64) -> Result<(Sandbox, Asking), Failure> {
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
    let prepare: Prepare = |it| beginning::install(it, false);
    let sandbox = Sandbox::open(settings, Mode::Shadow, Vec::new(), Some(prepare)).await?;
    let synced = poll(SYNCED_WITHIN, async || sandbox.running.synced().await).await?;
    if synced.is_none() {
        let cause = "the server did not see the second cluster in time";
        return Err(Failure::new(Exit::No, cause));
    }
    let made = sandbox.cluster.with(make_twice);
    made.map_err(|error| Failure::new(Exit::No, error.message))?;
    let asking = tokio::spawn(ask(sandbox.running.server.client.clone()));
    Ok((sandbox, AbortOnDropHandle::new(asking)))
}

/// Asks until there is a difference.
async fn ask(server: Server) -> Result<v1::ListDifferencesResponse, Failure> {
    loop {
        let request = v1::ListDifferencesRequest::default();
        let answer = server.answer(server.inspection().list_differences(request).await)?;
        if !answer.differences.is_empty() {
            return Ok(answer);
        }
        sleep(AGAIN).await;
    }
}

/// The report, and whether the agent has written nothing; `None` if there is no difference in time. Ends everything.
pub(super) async fn found(
    (sandbox, asking): (Sandbox, Asking),
    within: Duration,
) -> Result<Option<(v1::ListDifferencesResponse, bool)>, Failure> {
    let answer = timeout(within, asking).await.ok().and_then(Result::ok);
    let only_other = Writes {
        creates: MADE.len() as u64,
        deletes: 0,
        changes: 0,
    };
    let has_written_nothing = sandbox.cluster.with(|it| Writes::of(it)) == only_other;
    let answer = sandbox.running.close(answer.transpose()).await?;
    Ok(answer.map(|answer| (answer, has_written_nothing)))
}

/// Acts as a controller that forgets its own requests.
fn make_twice(cluster: &mut Cluster) -> Result<(), ApiError> {
    cluster.scale(NAMESPACE, OLD, 8)?;
    for suffix in MADE {
        cluster.create(beginning::new_pod(suffix))?;
    }
    Ok(())
}

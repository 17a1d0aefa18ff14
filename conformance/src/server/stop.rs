//! The rules for a stopped server. They come last, because no session can be opened after the stop.

use std::{
    process::Command,
    time::{Duration, SystemTime},
};

use decree::v1::{
    Batch, Drain, Heartbeat, event::Event, reconcile_request::Frame,
    reconcile_response::Frame as Answer,
};
use tokio::time::timeout;
use tonic_types::StatusExt as _;

use super::{
    link::{Link, Server},
    objects::{scaled, web},
    verdict::{Verdict, expect_reason, holds, wrong},
};
use crate::score::Rule;

/// The rules of this file.
pub(super) const RULES: [Rule; 5] = [
    of("a server that is stopped sends Drain with a deadline on every session"),
    of("a session with nothing in flight ends at once when the server is stopped"),
    of("no batch follows a Drain, and the session ends with its last outcome"),
    of("a session that does not finish is closed at the deadline of the Drain"),
    of("a server that drains refuses new sessions, with a time to come back"),
];

const fn of(rule: &'static str) -> Rule {
    let section = "heartbeats-and-the-end-of-a-session";
    Rule { section, rule }
}

/// The maximum time that the kit waits for the server to close a session, once that is due.
const MARGIN: Duration = Duration::from_secs(20);

/// A session during the stop of its server.
struct Witness {
    link: Link,
    /// The deadline in the Drain, or the frame in its place.
    drained: Result<SystemTime, String>,
}

/// Stops the server with a shell command while sessions are open. Returns the verdict on each rule.
pub(super) async fn verify(server: Server, command: String) -> Vec<(Rule, Verdict)> {
    let seen = play(&server, command).await;
    let seen = seen.unwrap_or_else(|why| [(); 5].map(|()| Err(why.clone())));
    RULES.into_iter().zip(seen).collect()
}

/// Returns the verdicts in the order of the rules.
async fn play(server: &Server, command: String) -> Result<[Verdict; 5], String> {
    let mut idle = server.open_shard("idle").await?;
    idle.list([], []).await;
    let (busy, batch, names) = at_work(server, "busy").await?;
    let (stuck, ..) = at_work(server, "stuck").await?;
    run(command).await?;
    let (mut idle, mut busy) = (Witness::new(idle).await, Witness::new(busy).await);
    let mut stuck = Witness::new(stuck).await;
    let drained = [&idle, &busy, &stuck];
    let drained = drained
        .iter()
        .try_for_each(|one| one.drained.clone().map(drop));
    let idle = idle.ends_early().await;
    let refused = refused(server).await;
    let last = async {
        // Without the Drain, this change would cause further creates.
        let change = Event::ReplicaSetApplied(scaled(3));
        busy.link.event(change).await;
        busy.link.created(&batch, &names, 150).await;
        busy.ends_early().await
    };
    let last = last.await;
    let deadline = stuck.ends_in_time().await;
    Ok([drained, idle, last, deadline, refused])
}

/// Opens a session with an unfinished create.
async fn at_work(server: &Server, shard: &str) -> Result<(Link, Batch, Vec<String>), String> {
    let mut link = server.open_shard(shard).await?;
    link.list([web(1)], []).await;
    let (batch, names) = link.creates().await?;
    Ok((link, batch, names))
}

async fn run(command: String) -> Result<(), String> {
    let ran = tokio::task::spawn_blocking(move || {
        let ran = Command::new("sh").args(["-c", &command]).status();
        match ran {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{command}`: {status}")),
            Err(error) => Err(format!("`{command}`: {error}")),
        }
    });
    ran.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn refused(server: &Server) -> Verdict {
    let Err(status) = server.first_answer().await else {
        return Err("a stream that was not refused".to_owned());
    };
    expect_reason(&status, "SERVER_DRAINING", &[])?;
    let delay = status.get_details_retry_info();
    let delay = delay.and_then(|info| info.retry_delay);
    holds(delay.is_some(), "a RetryInfo", &status)
}

impl Witness {
    async fn new(mut link: Link) -> Self {
        let drained = match link.next().await {
            Ok(Ok(Answer::Drain(drain))) => deadline(&drain),
            Ok(other) => Err(wrong("a Drain", &other)),
            Err(why) => Err(why),
        };
        Self { link, drained }
    }

    /// Expects that the session ends before the deadline, without another frame before the end.
    async fn ends_early(&mut self) -> Verdict {
        let deadline = self.drained.clone()?;
        match self.link.next().await? {
            Err(status) => expect_reason(&status, "SERVER_DRAINING", &[])?,
            Ok(frame) => return Err(wrong("the end", &frame)),
        }
        let left = deadline.duration_since(SystemTime::now());
        holds(left.is_ok(), "an end before the deadline", &left)
    }

    /// Expects that the session ends at the deadline, although the agent stays connected.
    async fn ends_in_time(&mut self) -> Verdict {
        let left = self.drained.clone()?.duration_since(SystemTime::now());
        let closed = timeout(left.unwrap_or_default() + MARGIN, async {
            loop {
                let beat = Frame::Heartbeat(Heartbeat::default());
                self.link.send(beat).await;
                match timeout(self.link.interval(), self.link.next()).await {
                    Ok(Ok(Err(status))) => return expect_reason(&status, "SERVER_DRAINING", &[]),
                    Ok(Ok(Ok(frame))) => return Err(wrong("the end", &frame)),
                    Ok(Err(why)) => return Err(why),
                    Err(_) => {}
                }
            }
        });
        let closed = closed.await;
        closed.unwrap_or_else(|_| Err("still open 20 seconds after the deadline".to_owned()))
    }
}

fn deadline(drain: &Drain) -> Result<SystemTime, String> {
    let deadline = drain.deadline.ok_or("a Drain without a deadline")?;
    SystemTime::try_from(deadline).map_err(|error| error.to_string())
}

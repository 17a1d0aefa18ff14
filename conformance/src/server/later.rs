//! Traces, and values of later versions.

use decree::v1::{Failed, NotStarted, Pod, outcome::Outcome};

use super::{
    case::{Verdict, cases},
    link::{Server, holds},
    objects::{gone, pod, replica_set, settled},
};

cases! {
    "traces" {
        "a batch carries the trace of the change that led to it, or none" => trace,
        "a trace that is not valid is ignored" => invalid_trace,
    }
    "compatibility" {
        "an unknown class of failure is taken as one that may pass" => failure_class,
        "an operation that was not started for an unknown cause is decided again" => cause,
        "a pod of an unknown phase counts as active" => phase,
    }
}

/// A value that no version defines.
const UNKNOWN: i32 = 77;
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn trace(server: Server) -> Verdict {
    let traceparent = format!("00-{TRACE_ID}-00f067aa0ba902b7-01");
    let found = trace_after(&server, &traceparent).await?;
    let is_right = found.is_empty() || found.contains(TRACE_ID);
    holds(is_right, "the trace of the event", &found)
}

async fn invalid_trace(server: Server) -> Verdict {
    let found = trace_after(&server, &"not a trace ".repeat(100)).await?;
    holds(found.is_empty(), "none", &found)
}

/// The trace of the batch that an event with this trace causes.
async fn trace_after(server: &Server, traceparent: &str) -> Result<String, String> {
    let mut link = server
        .open_with(vec![settled("web", 1)], vec![pod("a", "web")])
        .await?;
    link.traced_event(gone("a", "110"), traceparent).await;
    let (batch, _) = link.creates().await?;
    Ok(batch.traceparent)
}

async fn failure_class(server: Server) -> Verdict {
    let failed = Failed {
        class: UNKNOWN,
        ..Failed::default()
    };
    let (names, again) = after(&server, Outcome::Failed(failed)).await?;
    holds(again == names, "the same name", &again)
}

async fn cause(server: Server) -> Verdict {
    let not_started = NotStarted {
        cause: UNKNOWN,
        ..NotStarted::default()
    };
    after(&server, Outcome::NotStarted(not_started))
        .await
        .map(drop)
}

/// Reports this outcome of a create. Returns the names of the create and of the next one.
async fn after(server: &Server, outcome: Outcome) -> Result<(Vec<String>, Vec<String>), String> {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.report(batch.id, 0, outcome).await;
    let (_, again) = link.creates_after_statuses(&replica_set("web", 1)).await?;
    Ok((names, again))
}

async fn phase(server: Server) -> Verdict {
    let pod = Pod {
        phase: UNKNOWN,
        ..pod("a", "web")
    };
    let mut link = server.open_with(vec![settled("web", 1)], vec![pod]).await?;
    link.expect_nothing().await
}

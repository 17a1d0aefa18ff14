//! What happened, as log lines. ERROR: a person must look; WARN: may look; INFO: the life of sessions; DEBUG: operations.

use agent_core::{
    api::{ApiError, Kind},
    link::Disconnect,
    report::Report,
};
use tracing::{debug, error, info, warn};

use crate::metrics::word;

pub(crate) fn write(report: &Report) {
    match report {
        Report::SessionOpened { id } => info!(session = %id, "session opened"),
        Report::Disconnected(cause) => disconnected(cause),
        Report::Draining => info!("the server drains"),
        Report::Listed { kind, count } => info!(kind = word(*kind), count, "listed"),
        Report::ResyncAsked(resync) => info!(
            kind = resync.kind().as_str_name(),
            cause = %resync.cause,
            "the server asks for another list"
        ),
        Report::Skipped(error) => error!(%error, "an object is left out"),
        Report::Rejected(rejection) => {
            let object = rejection.object.clone().unwrap_or_default();
            let (namespace, name) = (object.namespace, object.name);
            let fields: Vec<_> = rejection
                .violations
                .iter()
                .map(|it| it.field.as_str())
                .collect();
            warn!(%namespace, %name, ?fields, "the server does not accept an object");
        }
        Report::BatchTaken { id, operations } => debug!(batch = id, operations, "batch taken"),
        Report::BatchRefused { id, refusal } => {
            let (cause, why) = (refusal.cause.as_str_name(), &refusal.message);
            debug!(batch = id, cause, %why, "batch refused");
        }
        Report::Finished {
            batch_id,
            operation,
            class,
            message,
        } => {
            debug!(batch = batch_id, operation, outcome = class, why = %message, "operation finished");
        }
    }
}

pub(crate) fn cluster_away(error: &ApiError) {
    warn!(%error, "the cluster does not tell its identity");
}

pub(crate) fn list_failed(kind: Kind, error: &ApiError) {
    warn!(kind = word(kind), %error, "list failed");
}

pub(crate) fn watch_ended(kind: Kind, error: Option<&ApiError>) {
    let error = error.map(ToString::to_string);
    debug!(kind = word(kind), error, "watch ended");
}

fn disconnected(cause: &Disconnect) {
    match cause {
        Disconnect::Ended => info!("session ended"),
        Disconnect::Lost(cause) => warn!(%cause, "the server is away"),
        Disconnect::Refused { status, .. } => error!(%status, "the server refuses this agent"),
    }
}

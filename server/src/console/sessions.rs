//! The sessions that the caller may see: who is at the other end, and how near they are to their limits.

use serde_json::json;

use super::{console_state::ConsoleState, event::event, reader::Reader};
use crate::{
    access::Caller,
    inspection::{ask_if_there, visible},
};

/// What was sent of the sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    sent: String,
}

// === impl Sessions ===

impl Sessions {
    /// Sends the sessions, if anything about them changed.
    pub(super) async fn poll(
        &mut self,
        state: &ConsoleState,
        caller: &Caller,
        reader: &mut Reader,
    ) {
        let text = describe(state, caller).await;
        if text != self.sent {
            reader.send(event("sessions", &text)).await;
            self.sent = text;
        }
    }
}

async fn describe(state: &ConsoleState, caller: &Caller) -> String {
    let shared = &state.shared;
    let limits = &shared.config.limits;
    let mut sessions = Vec::new();
    for one in visible(shared, caller) {
        let asked = ask_if_there(&one, |session, _| {
            (session.summarize(), session.stats().sizes)
        });
        let Some((summary, sizes)) = asked.await else {
            continue;
        };
        let beside = json!({
            "identity": shared.access.identity_of(&summary.session_id),
            "bytes": sizes.bytes,
            "quarantined": sizes.quarantined,
            "queued": sizes.queued,
        });
        let summary = state.json.text("SessionSummary", &summary);
        sessions.push(format!("{{\"session\":{summary},\"beside\":{beside}}}"));
    }
    let limits = json!({
        "sessions": limits.sessions_max,
        "memory": limits.memory_max,
        "sessionMemory": limits.session_memory_max,
        "sessionObjects": limits.objects_max,
    });
    let version = build_info::text();
    let sessions = sessions.join(",");
    format!("{{\"version\":\"{version}\",\"limits\":{limits},\"sessions\":[{sessions}]}}")
}

//! The sessions that the caller may see: their peers, and how near they are to their limits.

use serde_json::json;

use crate::{
    backend::{Caller, SessionUsage},
    console_state::ConsoleState,
};

pub(crate) async fn sessions(state: &ConsoleState, caller: &Caller) -> String {
    let limits = &state.config;
    let mut sessions = Vec::new();
    for one in state.server.usage(caller).await {
        let SessionUsage {
            summary,
            identity,
            bytes,
            quarantined,
            queued,
        } = one;
        let beside = json!({
            "identity": identity,
            "bytes": bytes,
            "quarantined": quarantined,
            "queued": queued,
        });
        let summary = state.json("SessionSummary", &summary);
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

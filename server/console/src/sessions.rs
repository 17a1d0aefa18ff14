//! The sessions that the caller may see: their peers, and how near they are to their limits.

use serde_json::json;

use crate::{
    backend::{Caller, SessionUsage},
    console_state::ConsoleState,
};

pub(crate) fn sessions(state: &ConsoleState, caller: &Caller) -> String {
    let limits = &state.config;
    let mut sessions = Vec::new();
    for one in state.server.usage(caller) {
        let SessionUsage {
            summary,
            identity,
            quarantined,
        } = one;
        let beside = json!({"identity": identity, "quarantined": quarantined});
        let summary = state.json("SessionSummary", &summary);
        sessions.push(format!("{{\"session\":{summary},\"beside\":{beside}}}"));
    }
    let limits = json!({
        "sessions": limits.sessions_max,
        "memory": limits.memory_max,
    });
    let version = service::build_info::text();
    let sessions = sessions.join(",");
    format!("{{\"version\":\"{version}\",\"limits\":{limits},\"sessions\":[{sessions}]}}")
}

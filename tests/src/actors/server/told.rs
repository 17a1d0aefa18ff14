//! What the reports of a session tell people.

use server_session::SessionReport;

use crate::facts::Told;

/// Returns what a report tells people of, if it is one of what must not go unnoticed.
pub(super) fn told(report: &SessionReport) -> Option<Told> {
    match report {
        SessionReport::Controller(server_core::ControllerReport::PodsDoNotLast { .. }) => {
            Some(Told::PodsDoNotLast)
        }
        SessionReport::NotAccepted {
            fault: Some(fault), ..
        } if fault.is_quarantined => Some(Told::Quarantined),
        SessionReport::Decided { .. }
        | SessionReport::Outcomes { .. }
        | SessionReport::NotAccepted { .. }
        | SessionReport::Differs { .. }
        | SessionReport::ViewComplete { .. }
        | SessionReport::ListRequested { .. }
        | SessionReport::Controller(_) => None,
    }
}

//! The notices to people in the reports of a session.

use server_session::SessionReport;

use crate::facts::Told;

/// The notice in a report, if people must know about it.
pub(super) fn told(report: &SessionReport) -> Option<Told> {
    match report {
        SessionReport::Controller(decree_core::ControllerReport::CreatesWait { .. }) => {
            Some(Told::PodsDoNotLast)
        }
        SessionReport::NotAccepted { fault, .. } if fault.is_quarantined => Some(Told::Quarantined),
        SessionReport::Decided { .. }
        | SessionReport::Outcomes { .. }
        | SessionReport::NotAccepted { .. }
        | SessionReport::Differs { .. }
        | SessionReport::ListRequested { .. }
        | SessionReport::Controller(_) => None,
    }
}

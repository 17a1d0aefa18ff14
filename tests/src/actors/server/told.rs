//! What the reports of a session tell people.

use server_session::Report;

use crate::facts::Told;

/// Returns what a report tells people of, if it is one of what must not go unnoticed.
pub(super) fn told(report: &Report) -> Option<Told> {
    match report {
        Report::Controller(server_core::Report::PodsDoNotLast { .. }) => Some(Told::PodsDoNotLast),
        Report::NotAccepted {
            fault: Some(fault), ..
        } if fault.is_quarantined => Some(Told::Quarantined),
        Report::Decided { .. }
        | Report::Outcomes { .. }
        | Report::NotAccepted { .. }
        | Report::Differs { .. }
        | Report::ViewComplete { .. }
        | Report::ListRequested { .. }
        | Report::Controller(_) => None,
    }
}

//! Where the frames of an agent lead.

use decree::TraceContext;
use server_core::{Event, Kind, Outcome, PodView, ResourceVersion, Span};

use crate::{refusal::Refusal, wire::Rejected};

/// Takes what arrived, in order.
pub(crate) trait Sink {
    /// Returns whether a list of this kind has been complete.
    fn is_listed(&self, kind: Kind) -> bool;
    /// Returns the version of the last complete list of this kind that had one.
    fn last_list(&self, kind: Kind) -> Option<ResourceVersion>;
    /// Takes an event, and its place in a trace.
    fn event(&mut self, event: Event, trace: Option<TraceContext>);
    /// Takes a pod as it is, and its place in a trace: inside a list a member of it, outside a change.
    fn pod(&mut self, pod: &PodView<'_>, trace: Option<TraceContext>);
    /// Takes an outcome, and its place in a trace.
    fn outcome(&mut self, outcome: Outcome, trace: Option<TraceContext>);
    /// Takes an outcome, which carries no object, the pod that the operation left, and its place in a trace.
    fn outcome_of_pod(&mut self, outcome: Outcome, pod: &PodView<'_>, trace: Option<TraceContext>);
    /// Takes an object that was not accepted.
    fn rejected(&mut self, rejected: Rejected);
    /// Checks that what has been taken is within its bounds: between two items, as a frame may have very many.
    fn check(&self) -> Result<(), Refusal>;
    /// Takes the age of the agent's view.
    fn view_age(&mut self, age: Span);
}

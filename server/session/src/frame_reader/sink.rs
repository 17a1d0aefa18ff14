//! The receiver of the content of an agent's frames.

use decree::TraceContext;
use server_core::{Event, Kind, Outcome, PodView, ResourceVersion, Span};

use crate::{refusal::Refusal, wire::Rejected};

/// Takes the content of frames, in order.
pub(crate) trait Sink {
    fn is_listed(&self, kind: Kind) -> bool;
    /// Returns the version of the last complete list of this kind that had one.
    fn last_list(&self, kind: Kind) -> Option<ResourceVersion>;
    fn event(&mut self, event: Event, trace: Option<TraceContext>);
    /// Takes a pod with its trace context: inside a list a member of it, outside a change.
    fn pod(&mut self, pod: &PodView<'_>, trace: Option<TraceContext>);
    /// Takes an outcome with its trace context. If the pod after the operation is separate, the outcome has no object.
    fn outcome(&mut self, outcome: Outcome, pod: Option<&PodView<'_>>, trace: Option<TraceContext>);
    fn rejected(&mut self, rejected: Rejected);
    /// Checks the limits of the session, between two items: a frame may have very many.
    fn check(&self) -> Result<(), Refusal>;
    fn view_age(&mut self, age: Span);
}

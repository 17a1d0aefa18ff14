//! Decides. To be opened with a theory of operation.

mod batch;
mod consistency;
mod controller;
mod decide;
mod event;
mod handlers;
mod index;
mod names;
mod object;
mod queue;
mod report;
mod selector;
mod sync;

pub use batch::{Action, Batch, BatchId, PodRef, Victim};
pub use controller::{Config, Controller, Sizes};
pub use decide::decide;
pub use event::{After, Effect, Event, FailureClass, NotStarted, Outcome};
pub use object::{
    Condition, Key, Kind, Labels, OwnerReference, Phase, Pod, Quarantine, Ready, ReplicaSet,
    ResourceVersion, Span, Status, Timestamp, Uid, deletion_cost,
};
pub use report::{Decision, Reason, Report, Rule, State, Thousandths, View};
pub use selector::{Parts, Requirement, Selector, Test};

//! Decides: the ReplicaSet controller of Kubernetes as one state machine without I/O.
#![doc = include_str!("../README.md")]
//!
//! # Stable items
//!
//! The items of this page follow semantic versioning; before 1.0, a minor version can add fields and rules. The hidden public items follow
//! the programs of Decree.
//!
//! # Theory of operation
//!
//! ```text
//!  Event ──▶ index ──▶ handlers ──▶ queue ──▶ sync: claim ▸ manage{rank, names} ▸ status ──▶ Batch
//!             ▲                                 ▲
//!  Outcome ───┴── the view shows it at once ────┘ the sync continues with its next step
//! ```
//!
//! [`Controller`] holds one cluster's projected pods and ReplicaSets. `handle_*` records events without a decision. `poll_batch` decides
//! for one ReplicaSet at a time, and returns one action on it with its reasons. `handle_outcome` takes the outcomes of the action into the
//! index, as if the stream had shown them. Then the ReplicaSet's sync continues: adopt and release, then create or delete, then the status.
//! [`decide_while`] runs the same machine on a snapshot until it is idle.
//!
//! Counts, ownership, availability and free names are updated as pods change. So a pod event costs the same in a ReplicaSet of ten pods and
//! of ten thousand. Only the choice of victims looks at all pods of a ReplicaSet.
//!
//! **Invariant:** the controller decides nothing while a list of either kind is incomplete, nor before both have been complete once, nor before
//! all nodes are shown, if the agent shows nodes.
//! **Invariant:** the view is never older than the outcomes; the controller does not use an older list, and an older event changes nothing.
//! **Invariant:** an object that the view does not know and the stream has passed is gone, and no older list or event brings it back. Every
//! object shown between the last tombstone and the end of the stream is known. A list that is newer than the stream is believed all the
//! same.
//! **Invariant:** a ReplicaSet waits for a list that began later in two cases only. An outcome did not carry the object after its write, or
//! the stream has passed a created pod and not shown it. Nothing is created on the strength of such a write.
//! **Invariant:** at most one batch is in flight for each ReplicaSet, identified by namespace, name and uid.
//! **Invariant:** each create is paid for. Whatever comes, the creates of a ReplicaSet's name are at most its desired pods, those in advance of
//! evictions, its allowance, its grants, the created pods that lived for a minute, and those that this controller deleted (`index/ledger.rs`). A repeat under the same name
//! is no further create, and a resume of a person adds the desired pods and the allowance, at most once a minute.
//! **Invariant:** equal inputs in equal order give equal outputs; no clock, no randomness and no order by hash enters them.
//! **Invariant:** a ReplicaSet that cannot be understood is left alone and reported, and harms no other.
//!
//! Deliberately outside: sockets, time, logs (there are [`ControllerReport`]s) and the validation of objects, except for the syntax of
//! selectors and names of pods. The agent executes the actions, with slow start and its stop rules.
//!
//! Numbers in parentheses, as in "(spec 5.3)", are paragraphs of docs/internals/spec.md, which describes upstream. W… are upstream's known weaknesses
//! (spec 13); docs/architecture.md lists the departures.

mod batch;
mod config;
mod controller;
mod decide;
mod event;
mod handlers;
mod held;
mod index;
mod labels;
mod names;
mod node;
mod object;
mod pod_view;
mod preferences;
mod queue;
mod reason;
mod report;
mod selector;
mod sync;
#[doc(hidden)]
pub mod syntax;
#[doc(hidden)]
pub mod wording;

pub use batch::{Advice, PodRef, Victim};
pub use config::{Brake, Config, Costs};
pub use decide::{Interrupted, Objects, decide, decide_while};
pub use labels::{Label, Labels};
pub use names::NameSeed;
pub use node::Node;
pub use object::{
    Condition, Key, OwnerReference, Phase, Pod, PodState, Ready, ReplicaSet, ResourceVersion, Span,
    Status, Timestamp, Uid,
};
pub use preferences::{Preferences, ScaleIn, ScaleInCost};
pub use reason::{Reason, Rule};
pub use report::Decision;
pub use selector::{Parts, Quarantine, Requirement, Requirements, Selector, Test};
pub use sync::status::REPLICA_FAILURE;

#[doc(hidden)]
pub use {
    batch::{Action, ActionKind, Batch, BatchId},
    controller::{
        Controller, Deletable, Impact, ImpactWalk, Inspect, KnownSet, Need, NeedWalk, QuotaLimits,
        Sizes, Surroundings, SurroundingsCopy, SurroundingsIndex, keep_within,
    },
    decide::controller_of,
    event::{After, Event, FailureClass, NotStarted, OperationResult, Outcome},
    held::{Counted, Held, HeldMap, HeldQueue},
    index::ledger::{Account, Ledger, Loss},
    node::{Hint, NodeChange},
    object::{ByKind, Kind, Resume},
    pod_view::{OwnerView, PodView},
    report::{Answered, ControllerReport, NotReady, OutcomeCounts, ScaleDown, State, View},
    sync::asking::CostsWanted,
    sync::rank::{Candidate, DeletionPosition, Preferred, RankedPod, deletion_positions},
};

//! What news leave to be done where they concern very many objects.

use crate::{
    index::{PodFacts, SetId, Sweep},
    object::{Kind, ResourceVersion},
    queue::Priority,
};

/// Something that is left to be done.
#[derive(Clone, Debug)]
pub(super) enum Leftover {
    /// Count the pods of a ReplicaSet.
    Count(SetId),
    /// Let go of what is remembered of gone objects up to a version.
    Forget(Kind, ResourceVersion),
    /// Ask the other ReplicaSets whether they may adopt an orphan.
    Offer(Box<Offer>),
    /// Take what a list says that has ended.
    EndList(Box<EndedList>),
}

/// An orphan that is offered to the ReplicaSets that match it.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub(super) pod: PodFacts,
    pub(super) priority: Priority,
    /// How many match so far.
    pub(super) matches: usize,
    /// The last ReplicaSet that was asked, while there are others behind it.
    pub(super) last: Option<SetId>,
}

/// A list that has ended and is not complete until all is taken that it says.
#[derive(Clone, Debug)]
pub(super) struct EndedList {
    pub(super) kind: Kind,
    pub(super) number: u32,
    pub(super) version: Option<ResourceVersion>,
    pub(super) sweep: Sweep,
}

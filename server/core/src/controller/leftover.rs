//! What news leave to be done where they concern very many objects.

use crate::{
    index::{SetId, Sweep},
    object::{Kind, ResourceVersion},
};

/// Something that is left to be done.
#[derive(Clone, Debug)]
pub(super) enum Leftover {
    /// Count the pods of a ReplicaSet.
    Count(SetId),
    /// Let go of what is remembered of gone objects up to a version.
    Forget(Kind, ResourceVersion),
    /// Take what a list says that has ended.
    EndList(Box<EndedList>),
}

/// A list that has ended and is not complete until all is taken that it says.
#[derive(Clone, Debug)]
pub(super) struct EndedList {
    pub(super) kind: Kind,
    pub(super) number: u32,
    pub(super) version: Option<ResourceVersion>,
    pub(super) sweep: Sweep,
}

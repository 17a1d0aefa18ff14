//! What `admission` bounds, for the identities and the refusals of this server.

use server_access::Identity;

use crate::error::Refusal;

/// See [`admission::Places`].
pub(crate) type Places = admission::Places<Identity>;
/// See [`admission::Place`].
pub(crate) type Place = admission::Place<Identity>;
/// See [`admission::PlaceHandle`].
pub(crate) type PlaceHandle = admission::PlaceHandle<Identity>;
/// See [`admission::SettledPlace`].
pub(crate) type SettledPlace = admission::SettledPlace<Identity>;
/// See [`admission::UnderWay`].
pub(crate) type UnderWay = admission::UnderWay<Identity>;
/// See [`admission::Owner`].
pub(crate) type Owner = admission::Owner<Identity>;
/// See [`admission::Shares`].
pub(crate) type Shares = admission::Shares<Identity, Refusal>;
/// See [`admission::Share`].
pub(crate) type Share = admission::Share<Identity, Refusal>;
/// See [`admission::Memory`].
pub(crate) type Memory = admission::Memory<Refusal>;
/// See [`admission::MemoryShare`].
pub(crate) type MemoryShare = admission::MemoryShare<Refusal>;
/// See [`admission::EndSignal`].
pub(crate) type EndSignal = admission::EndSignal<Refusal>;

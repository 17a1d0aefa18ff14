//! The bounds of `admission`, with the identities and refusals of this server.

use server_access::Identity;

use crate::error::Refusal;

pub(crate) type Places = admission::Places<Identity>;
pub(crate) type Place = admission::Place<Identity>;
pub(crate) type PlaceHandle = admission::PlaceHandle<Identity>;
pub(crate) type SettledPlace = admission::SettledPlace<Identity>;
pub(crate) type UnderWay = admission::UnderWay<Identity>;
pub(crate) type Owner = admission::Owner<Identity>;
pub(crate) type Shares = admission::Shares<Identity, Refusal>;
pub(crate) type Share = admission::Share<Identity, Refusal>;
pub(crate) type Memory = admission::Memory<Refusal>;
pub(crate) type MemoryShare = admission::MemoryShare<Refusal>;
pub(crate) type EndSignal = admission::EndSignal<Refusal>;

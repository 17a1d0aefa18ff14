//! The bounds of `admission`, with the identities and refusals of this server.

use server_access::Identity;

use crate::error::Refusal;

pub(crate) type Pool = admission::Pool<Identity, Refusal>;
pub(crate) type Slot = admission::Slot<Identity, Refusal>;
pub(crate) type SlotHandle = admission::SlotHandle<Identity, Refusal>;
pub(crate) type SettledSlot = admission::SettledSlot<Identity, Refusal>;
pub(crate) type UnderWay = admission::UnderWay<Identity, Refusal>;
pub(crate) type Owner = admission::Owner<Identity>;
pub(crate) type EndSignal = admission::EndSignal<Refusal>;

//! The bounds of `admission`, with the identities and refusals of this server.

use server_access::Identity;

use crate::error::Refusal;

pub(crate) type Pool = service::admission::Pool<Identity, Refusal>;
pub(crate) type Slot = service::admission::Slot<Identity, Refusal>;
pub(crate) type SlotHandle = service::admission::SlotHandle<Identity, Refusal>;
pub(crate) type SettledSlot = service::admission::SettledSlot<Identity, Refusal>;
pub(crate) type Owner = service::admission::Owner<Identity>;
pub(crate) type EndSignal = service::admission::EndSignal<Refusal>;

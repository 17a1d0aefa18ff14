//! Scenarios of the controller: the spec's checklists 12.1–12.5, as far as they apply to this design, and properties of any scenario.

mod availability;
mod claiming;
mod cluster_change;
mod credit;
mod deleting;
mod events;
mod failures;
mod hostile;
mod ledger;
mod memory;
mod nodes;
mod objects;
mod older;
mod properties;
mod queueing;
mod rig;
mod room;
mod scaling;
mod snapshots;
mod status;
mod unseen;

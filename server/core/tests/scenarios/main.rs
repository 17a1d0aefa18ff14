//! What the controller does, told as stories: the scenarios of the spec's checklists 12.1–12.5 that apply to this design, and properties
//! that hold for any story.

mod availability;
mod claiming;
mod cluster_change;
mod deleting;
mod events;
mod failures;
mod lasting;
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

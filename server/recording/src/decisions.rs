//! The decisions of a recording, counted by action.

use decree::v1::{self, batch::Action, reconcile_response::Frame};

/// The number of decisions, and of their operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Decisions of any kind: one batch each.
    pub batches: u64,
    /// Pods to create.
    pub creates: u64,
    /// Pods to delete.
    pub deletes: u64,
    /// Pods to adopt.
    pub adopts: u64,
    /// Pods to release.
    pub releases: u64,
    /// Statuses to write.
    pub status_writes: u64,
}

// === impl Decisions ===

impl Decisions {
    /// Adds the decisions of a frame of the server.
    pub(crate) fn add(&mut self, frame: &v1::ReconcileResponse) {
        let Some(Frame::Batches(batches)) = &frame.frame else {
            return;
        };
        for batch in &batches.batches {
            self.batches += 1;
            match &batch.action {
                Some(Action::Create(create)) => self.creates += create.names.len() as u64,
                Some(Action::Delete(delete)) => self.deletes += delete.victims.len() as u64,
                Some(Action::Claim(claim)) => {
                    self.adopts += claim.adopts.len() as u64;
                    self.releases += claim.releases.len() as u64;
                }
                Some(Action::WriteStatus(_)) => self.status_writes += 1,
                None => {}
            }
        }
    }
}

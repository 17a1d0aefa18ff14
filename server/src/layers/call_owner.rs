//! The owner of the bytes of a call, and the refusal of the call while they arrive.

use std::sync::Arc;

use server_access::Identity;
use service::admission::{BodyFault, BodyOwner};
use tonic::Status;

use crate::{capacity::Slot, error::Refusal, peer::ConnectionPeer, shared::Shared};

/// The peer of a call.
#[derive(Debug)]
pub(super) struct CallOwner {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: ConnectionPeer,
}

impl BodyOwner for CallOwner {
    type Identity = Identity;
    type Refusal = Refusal;
    type Error = Status;

    fn hold(&self, bytes: usize) -> Result<Slot, Refusal> {
        self.peer.take(&self.shared.received, bytes)
    }

    /// The refusal as a body error, from which the refusal can be read again. Nobody reads an answer on a broken stream. For tonic,
    /// `CANCELLED` would be an end in order, and `INTERNAL` a message that cannot be decoded.
    fn refuse(&self, fault: BodyFault<Refusal>) -> Status {
        let refusal = match fault {
            BodyFault::Broken => return Status::aborted("the stream broke"),
            BodyFault::Full(refusal) => refusal,
            BodyFault::TooLarge { max } => Refusal::TooLarge { max },
            BodyFault::SecondMessage => Refusal::Malformed {
                detail: "more than one message in a call that has one".to_owned(),
            },
        };
        let mut status = Status::from(refusal.clone());
        status.set_source(Arc::new(refusal));
        status
    }
}

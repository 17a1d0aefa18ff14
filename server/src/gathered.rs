//! What a decision reads, copied out of a session.

use server_core::Surroundings;
use tokio::{runtime::Handle, task::spawn_blocking};

/// Frees itself beside the threads that serve sessions, wherever it is dropped: a call that is refused or left may have copied as many
/// pods as a session holds.
#[derive(Debug)]
pub(crate) struct Gathered(Surroundings);

// === impl Gathered ===

impl Gathered {
    /// Returns nothing yet of what a decision on a ReplicaSet reads.
    pub(crate) fn nothing(namespace: &str, name: &str) -> Self {
        Self(Surroundings::of(namespace, name))
    }

    /// Takes out what was gathered, for whoever is beside those threads already.
    pub(crate) fn take(mut self) -> Surroundings {
        std::mem::take(&mut self.0)
    }
}

impl AsRef<Surroundings> for Gathered {
    fn as_ref(&self) -> &Surroundings {
        &self.0
    }
}

impl AsMut<Surroundings> for Gathered {
    fn as_mut(&mut self) -> &mut Surroundings {
        &mut self.0
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        let gathered = std::mem::take(&mut self.0);
        if gathered.objects() > 0 && Handle::try_current().is_ok() {
            spawn_blocking(move || drop(gathered));
        }
    }
}

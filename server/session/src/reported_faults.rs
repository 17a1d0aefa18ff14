//! The faults of objects that have been reported, so that an object that comes again is reported once.

use std::collections::BTreeSet;

use decree::v1;

/// The maximum number of remembered faults.
const REMEMBERED_MAX: usize = 1_000;

/// The faults by namespace and name of their object.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportedFaults(BTreeSet<(String, String, String)>);

// === impl ReportedFaults ===

impl ReportedFaults {
    /// Returns whether this fault of this object is new, as far as is remembered, and remembers it.
    pub(crate) fn is_new(&mut self, object: &v1::ObjectRef, fault: &str) -> bool {
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        let (namespace, name) = (object.namespace.clone(), object.name.clone());
        self.0.insert((namespace, name, fault.to_owned()))
    }
}

//! The cases of rules.

use std::{future::Future, pin::Pin};

use super::{link::Server, verdict::Verdict};
use crate::score::Rule;

/// A rule, and the function that verifies it.
pub(super) struct Case {
    pub(super) rule: Rule,
    pub(super) verify: fn(Server) -> Pin<Box<dyn Future<Output = Verdict> + Send>>,
}

/// Creates the cases of a file: the rules of each section of docs/protocol.md, and the `async fn` that verifies each.
macro_rules! cases {
    ($($section:literal { $($rule:literal => $verify:path,)* })*) => {
        pub(super) const CASES: &[super::case::Case] = &[$($(super::case::Case {
            rule: crate::Rule { section: $section, rule: $rule },
            verify: |server| Box::pin($verify(server)),
        },)*)*];
    };
}
pub(super) use cases;

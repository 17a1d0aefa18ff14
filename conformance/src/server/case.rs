//! What a case is.

use std::{future::Future, pin::Pin};

use super::link::Server;

/// What a case returns where the rule is not kept: what it saw.
pub(super) type Verdict = Result<(), String>;

/// A rule and how it is verified.
pub(super) struct Case {
    pub(super) section: &'static str,
    pub(super) rule: &'static str,
    pub(super) verify: fn(Server) -> Pin<Box<dyn Future<Output = Verdict> + Send>>,
}

/// Makes the cases of a file: the rules of each section of docs/protocol.md, and the `async fn` that verifies each.
macro_rules! cases {
    ($($section:literal { $($rule:literal => $verify:path,)* })*) => {
        pub(super) const CASES: &[super::case::Case] = &[$($(super::case::Case {
            section: $section,
            rule: $rule,
            verify: |server| Box::pin($verify(server)),
        },)*)*];
    };
}
pub(super) use cases;

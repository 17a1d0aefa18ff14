//! What is found.

/// Something that the speed of the machine decides.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Finding {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) function: String,
    /// In short, such as `took < LIMIT`.
    pub(super) what: String,
}

//! Worlds that are broken on purpose, to see that the checkers see it.

/// One break. Each stands for a bug that somebody has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutant {
    /// Deletes lose the uid that they are to hit (W11).
    DropUidPrecondition,
    /// A create whose reply is late is sent again, and the server makes up another name (W3, kube#2082).
    ReplayCreate,
    /// The controller is told that a list is complete when it begins.
    DecideOnPartialView,
    /// The controller is not told what its own writes did (W1).
    ForgetOwnWrites,
    /// Every batch leaves twice.
    SendBatchTwice,
    /// Deletes hit a pod that belongs to nobody.
    DeleteBystanders,
    /// Watches swallow events.
    LoseEvents,
    /// An agent begins a session, and another takes over, as if no create of an older one could take effect any more.
    SkipBarrier,
    /// The API server ignores the timeout of creates.
    IgnoreTimeout,
    /// New pods get the names of pods that are gone.
    ReuseNames,
}

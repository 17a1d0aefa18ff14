//! Compares what is decided with what another controller does (mode shadow): the same stream shows both.
//!
//! # Theory of operation
//! Both controllers look at one cluster, neither at the same moment: the other acts on a view of its own, in steps, and its acts come
//! back on two streams that have no common order. So the question is never what the server would do now. It is whether *any* view that the
//! other controller can have had explains what it did: any cut of the two streams that is no more than [`LAG`] late, at any moment since, as
//! the age classes of young pods change with time. A controller sees what it has written before it decides again, so such a view holds
//! every pod that was made before, and what has gone since was decided at once, within [`REACH`].
//!
//! ```text
//! pod made, going, changed; other replicas ─▶ Past (what can be taken back) ─┐
//!          │                                                                  ▼
//!          └─▶ Episode: acts ── after SETTLED, and again after LATE ──▶ Search: is there a view that explains them?
//!                 └── calm ──▶ not done for PENDING_MAX? the status that is due not there for PENDING_MAX?
//! ```
//! | subject | differs if |
//! | --- | --- |
//! | count | more pods are made than any view wants; what is due is not done; more go than were too many |
//! | victims | a pod goes that no view chooses, and one that was chosen stays |
//! | status | the status that the pods call for is not the one that is written |
//! | adoption | a pod changes owner for no reason; or a change that is due is not done |
//!
//! Where upstream's order of deletion leaves open which of several pods goes, each of them is explained, but not more than go.
//!
//! **Invariant:** what is only late is no difference: each is told when its time is over, and once.
//! **Invariant:** each difference is one of the comparisons that are counted.
//! **Invariant:** how much is looked at is bounded by the events that have come. What they have not paid for is not compared.
//!
//! Deliberately outside: who did it. A pod that somebody deletes while there are not too many is counted as deleted by others; of those that
//! go amid a scale-down, a few are believed to be.

mod acts;
mod allowance;
mod difference;
mod episode;
mod past;
mod search;
mod shadow;
mod view;

pub use difference::{
    Agreement, Agreements, Departure, Difference, Finding, LAG, LATE, PENDING_MAX, REACH, SETTLED,
    STATUS_MAX, Side, Subject,
};
pub use shadow::Shadow;

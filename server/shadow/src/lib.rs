//! Compares decisions with the acts of another controller (shadow mode): the same stream shows both.
//!
//! # Theory of operation
//! Both controllers look at one cluster, but not at the same moment. The other one acts on its own view, in steps, and its acts come back
//! on two streams without a common order. So the question is never what the server would do now. The question is whether *any* possible
//! view of the other controller explains its acts. Such a view is a cut of the two streams that is at most [`LAG`] late, at any moment
//! since, as the age classes of young pods change with time. A controller sees its writes before it decides again. So such a view holds
//! every pod that was created before, and one decision deleted all pods that have gone since, within [`REACH`].
//!
//! ```text
//! pod made, going, changed; other replicas ─▶ Past (what can be taken back) ─┐
//!          │                                                                  ▼
//!          └─▶ Episode: acts ── after SETTLED, and again after LATE ──▶ Search: is there a view that explains them?
//!                 └── calm ──▶ not done for PENDING_MAX? the status that is due not there for PENDING_MAX?
//! ```
//! | subject | differs if |
//! | --- | --- |
//! | count | more pods are created than any view desires; a due act is not done; more pods are deleted than were surplus |
//! | victims | a pod is deleted that no view chooses, and a chosen pod stays |
//! | status | the written status is not the status that the pods call for |
//! | adoption | a pod changes owner for no reason; or a change that is due is not done |
//!
//! If upstream's order of deletion leaves open which of several pods is deleted, each of them is explained, but only the number that are
//! deleted.
//!
//! **Invariant:** a late act is no difference. Each difference is reported once, when its time is over.
//! **Invariant:** each difference is one of the counted comparisons.
//! **Invariant:** the number of events limits the work. Acts that the events have not paid for are not compared.
//!
//! Deliberately outside: who acted. A pod that is deleted without a surplus counts as deleted by others; of the pods that are deleted
//! during a scale-down, a few do.

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

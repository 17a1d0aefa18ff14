//! Compares what is decided with what another controller does (mode shadow): the same stream shows both.
//!
//! # Theory of operation
//! Both controllers look at one cluster, neither at the same moment: the other acts on a view of its own, in steps, and its acts come
//! back on two streams that have no common order. So single steps are not compared. What happens to a ReplicaSet between two rests is
//! an episode; it collects what was decided on any view of that time, and what the other did; and it is judged when the other has
//! come to rest: when nothing was made or removed for [`SETTLED`] and nothing is left to do.
//!
//! ```text
//! decision, pod made or going, owner changed, other replicas ─▶ Episode ── calm, nothing due ─▶ judged: count, victims, adoption
//!                                                                  │                       └─▶ status, when it has stood for STATUS_MAX
//!                                                                  └── due for PENDING_MAX ──▶ "not done"
//! ```
//! | subject | differs if |
//! | --- | --- |
//! | count | pods were made beyond the most that were wanted in the episode; or what is due is not done |
//! | victims | a pod went that no view of the episode would have chosen, while one stays that was chosen |
//! | status | the status that the pods call for is not the one that is written |
//! | adoption | a pod changed owner that matched no reason for it; or one that is due is not done |
//!
//! An episode that has no rest for [`RESTLESS_MAX`] is judged by its count alone, and the rest of it is forgotten: what it holds is bounded by
//! the pods of its ReplicaSet.
//!
//! **Invariant:** what is only late is no difference: each is told when its time is over, and once.
//!
//! Deliberately outside: who did it. A pod that a person deletes amid a scale-down looks like a victim that the other chose.

mod acts;
mod difference;
mod episode;
mod shadow;

pub use difference::{
    Departure, Difference, PENDING_MAX, RESTLESS_MAX, SETTLED, STATUS_MAX, Subject,
};
pub use shadow::Shadow;

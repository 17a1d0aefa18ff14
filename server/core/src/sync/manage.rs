//! How many pods are made or go (spec 6).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    End, Next, Step, Tally,
    rank::{self, Candidate, Chosen},
    status::Frozen,
};
use crate::{
    batch::{Action, PodRef, Victim},
    controller::Controller,
    index::{Entry, Index, PodId, Set, SetId},
    names::{self, NameCursor},
    object::{Span, Timestamp},
    report::{Reason, Report, Rule},
};

/// What became of the manage step, for the condition ReplicaFailure (W7) and the end of the sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Nothing had to be done, or it was done.
    Good,
    /// It failed, by these words.
    Failed {
        message: String,
        retry_after: Option<Span>,
    },
    /// It could not be tried, or neither failed nor succeeded: what the condition says still holds.
    Pending {
        afresh: bool,
        retry_after: Option<Span>,
    },
}

// === impl Attempt ===

impl Attempt {
    /// Judges a manage batch by its outcomes. A namespace that is being deleted counts as no error (W15).
    pub(super) fn judge(frozen: &Frozen, tally: Tally) -> Self {
        let Tally {
            error,
            afresh,
            done,
            namespace_terminating,
            skipped,
            not_executed,
            retry_after,
        } = tally;
        if let Some((_, message)) = error {
            let message = if frozen.surplus() > 0 {
                format!("unable to delete pods: {message}")
            } else {
                message
            };
            return Self::Failed {
                message,
                retry_after,
            };
        }
        let afresh = afresh || (skipped && !namespace_terminating && !not_executed);
        if afresh || ((namespace_terminating || not_executed) && !done) {
            return Self::Pending {
                afresh,
                retry_after,
            };
        }
        Self::Good
    }

    /// Returns how a sync ends whose status write, if there was one, came to `tally`. Its failure masks this one (spec 5.1).
    pub(super) fn end(self, tally: Tally, requeue_at: Option<Timestamp>) -> End {
        let (error, afresh, retry_after) = match self {
            Self::Good => (None, false, None),
            Self::Failed {
                message,
                retry_after,
            } => (Some(message), false, retry_after),
            Self::Pending {
                afresh,
                retry_after,
            } => (None, afresh, retry_after),
        };
        let afresh = afresh || tally.afresh;
        let retry_after = retry_after.max(tally.retry_after);
        let error = tally.message().or(error);
        let requeue_at = requeue_at.filter(|_| error.is_none());
        End {
            error,
            requeue_at,
            afresh,
            retry_after,
        }
    }
}

// === impl Controller ===

impl Controller {
    /// Decides what is made or goes, and goes straight on to the status where nothing is.
    pub(super) fn manage(&mut self, now: Timestamp, id: SetId) -> Next {
        self.index.let_become_available(now, id);
        let Some(set) = self.index.set(id) else {
            return Next::Finished(End::default());
        };
        let frozen = Frozen::of(set, now);
        let surplus = frozen.surplus();
        if surplus == 0 || set.object.deleting {
            return self.write_status(now, id, frozen, Attempt::Good);
        }
        let count = self.burst(surplus);
        let action = if surplus < 0 {
            self.create(id, count)
        } else {
            self.delete(now, id, count)
        };
        if action.operations() == 0 {
            let attempt = Attempt::Pending {
                afresh: true,
                retry_after: None,
            };
            return self.write_status(now, id, frozen, attempt);
        }
        Next::Send(action, reasons(&frozen, count), Step::Manage(frozen))
    }

    /// Returns how many operations the manage step may have.
    pub(super) fn manage_weight(&self, set: &Set) -> usize {
        if set.object.deleting {
            0
        } else {
            self.burst(set.surplus())
        }
    }

    /// Returns how much of a surplus or lack one sync acts on.
    fn burst(&self, surplus: i64) -> usize {
        let all = usize::try_from(surplus.unsigned_abs()).unwrap_or(usize::MAX);
        all.min(self.config.burst_replicas.max(1) as usize)
    }

    /// Names the pods to make.
    fn create(&mut self, id: SetId, count: usize) -> Action {
        let (generate_name, names) = self.index.choose_names(id, count);
        let slow_start_initial = self.config.slow_start_initial.max(1);
        Action::Create {
            names,
            generate_name,
            slow_start_initial,
        }
    }

    /// Chooses the pods that go.
    fn delete(&mut self, now: Timestamp, id: SetId, count: usize) -> Action {
        let chosen = self.index.victims(id, count, now);
        for ratio in chosen.iter().filter_map(|chosen| chosen.age_ratio) {
            self.reports.push(Report::DeletionAgeRatio(ratio));
        }
        let by_version = self.config.delete_by_version;
        let victims = chosen.into_iter().filter_map(|chosen| {
            let pod = self.index.pod(chosen.id)?;
            Some(Victim {
                pod: PodRef {
                    name: Arc::clone(&pod.name),
                    uid: pod.uid.clone(),
                },
                version: pod.version.filter(|_| by_version),
                reason: Reason {
                    rule: chosen.rule,
                    detail: chosen.detail,
                },
            })
        });
        Action::Delete(victims.collect())
    }
}

// === impl Index ===

impl Index {
    /// Chooses the pods that go, in the order of choice.
    pub(crate) fn victims(&self, id: SetId, count: usize, now: Timestamp) -> Vec<Chosen<PodId>> {
        let related = self.related_by_node(id);
        let mut pods: Vec<_> = self.active_pods(id).collect();
        if count >= pods.len() {
            pods.sort_unstable_by_key(|(_, pod)| &pod.name);
        }
        let candidates = pods
            .into_iter()
            .map(|(id, pod)| candidate(id, pod, &related));
        rank::choose(candidates, count, now)
    }

    /// Returns whether upstream's order is open between a pod and one that is chosen here.
    pub(crate) fn order_is_open(
        &self,
        id: SetId,
        pod: PodId,
        chosen: &[Chosen<PodId>],
        now: Timestamp,
    ) -> bool {
        let related = self.related_by_node(id);
        let pods = self.active_pods(id);
        let candidates = pods.map(|(id, pod)| candidate(id, pod, &related));
        let chosen: BTreeSet<_> = chosen.iter().map(|chosen| chosen.id).collect();
        rank::order_is_open(candidates, pod, &chosen, now)
    }

    /// Returns what `generateName` is and the names of the next `count` pods, which are being made from here on. Fewer only where the
    /// names run out.
    fn choose_names(&mut self, id: SetId, count: usize) -> (Arc<str>, Vec<Arc<str>>) {
        let Some(set) = self.set_mut(id) else {
            return ("".into(), Vec::new());
        };
        let generate_name = Arc::clone(&set.generate_name);
        let namespace = Arc::clone(&set.object.key.namespace);
        let aside = NameCursor::new(&set.object.key.uid);
        let mut cursor = std::mem::replace(&mut set.cursor, aside);
        let taken = |name: &str| self.is_taken(&namespace, name);
        let base = names::base(&generate_name);
        let names: Vec<_> = (0..count).map_while(|_| cursor.next(base, taken)).collect();
        if let Some(set) = self.set_mut(id) {
            set.cursor = cursor;
        }
        names
            .iter()
            .for_each(|name| self.begin_making(&namespace, Arc::clone(name)));
        (generate_name, names)
    }
}

fn candidate<'a>(
    id: PodId,
    pod: &'a Entry,
    related: &HashMap<Option<&str>, u32>,
) -> Candidate<'a, PodId> {
    let node = pod.node.as_deref();
    Candidate {
        id,
        uid: &pod.uid,
        node,
        phase: pod.phase,
        ready: pod.ready,
        deletion_cost: pod.deletion_cost,
        rank: related.get(&node).copied().unwrap_or(0),
        restarts: pod.restarts,
        sidecar_restarts: pod.sidecar_restarts,
        created: pod.created,
    }
}

fn reasons(frozen: &Frozen, count: usize) -> Vec<Reason> {
    let surplus = frozen.surplus();
    let rule = if surplus < 0 {
        Rule::TooFewReplicas
    } else {
        Rule::TooManyReplicas
    };
    let detail = format!(
        "{} active pods, {} wanted",
        frozen.counts.active, frozen.wanted
    );
    let mut reasons = vec![Reason { rule, detail }];
    if count as u64 != surplus.unsigned_abs() {
        let detail = format!("{count} of {} at once", surplus.unsigned_abs());
        reasons.push(Reason {
            rule: Rule::BurstLimited,
            detail,
        });
    }
    reasons
}

//! How many pods are made or go (spec 6).

use std::{collections::HashMap, sync::Arc};

use super::{
    End, Next, Step, Tally, is_alive,
    rank::{self, Candidate},
    status::Frozen,
};
use crate::{
    batch::{Action, PodRef, Victim},
    controller::Controller,
    index::{Entry, Index, PodId, SetId},
    names::{self, NameCursor},
    object::{Span, Timestamp},
    report::{Reason, Report, Rule},
};

/// What became of the manage step, for the condition ReplicaFailure (W7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Nothing had to be done, or it was done.
    #[default]
    Good,
    /// It failed, by these words.
    Failed {
        message: String,
        retry_after: Option<Span>,
    },
    /// It was not tried, or neither failed nor succeeded: what the condition says still holds.
    Pending {
        afresh: bool,
        retry_after: Option<Span>,
    },
}

// === impl Attempt ===

impl Attempt {
    /// Judges a manage batch by its outcomes.
    pub(crate) fn judge(frozen: &Frozen, tally: Tally) -> Self {
        let Tally {
            done,
            error,
            afresh,
            namespace_terminating,
            not_executed,
            retry_after,
        } = tally;
        match error {
            Some((_, message)) if frozen.surplus() > 0 => Self::Failed {
                message: format!("unable to delete pods: {message}"),
                retry_after,
            },
            Some((_, message)) => Self::Failed {
                message,
                retry_after,
            },
            None if afresh => Self::Pending {
                afresh,
                retry_after,
            },
            None if (namespace_terminating || not_executed) && done == 0 => Self::Pending {
                afresh,
                retry_after,
            },
            None => Self::Good,
        }
    }

    /// Returns how a sync ends whose status write, if there was one, came to `tally`. Its failure masks this one (spec 5.1).
    pub(crate) fn end(self, tally: Tally, requeue_after: Option<Span>) -> End {
        let status_failed = tally.error.map(|(_, message)| message);
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
        let failed = error.is_some() || status_failed.is_some();
        End {
            error: status_failed.or(error),
            requeue_after: requeue_after.filter(|_| !failed),
            afresh: afresh || tally.afresh,
            retry_after: retry_after.max(tally.retry_after),
        }
    }
}

// === impl Controller ===

impl Controller {
    /// Decides what is made or goes, and goes straight on to the status where nothing is.
    pub(crate) fn manage(&mut self, now: Timestamp, id: SetId) -> Next {
        self.index.let_become_available(now, id);
        let Some(set) = self.index.set(id) else {
            return Next::Finished(End::default());
        };
        let frozen = Frozen::of(set, now);
        let surplus = frozen.surplus();
        let burst = i64::from(self.config.burst_replicas.max(1));
        let count = usize::try_from(surplus.abs().min(burst))
            .expect("the burst is a small positive number");
        if surplus == 0 || !is_alive(set) {
            return self.write_status(now, id, frozen, Attempt::Good);
        }
        let (action, rule) = if surplus < 0 {
            (self.create(id, count), Rule::TooFewReplicas)
        } else {
            (self.delete(now, id, count), Rule::TooManyReplicas)
        };
        if action.operations() == 0 {
            return self.write_status(
                now,
                id,
                frozen,
                Attempt::Pending {
                    afresh: true,
                    retry_after: None,
                },
            );
        }
        let mut reasons = vec![Reason {
            rule,
            detail: format!(
                "{} active pods, {} wanted",
                frozen.counts.active, frozen.replicas
            ),
        }];
        if surplus.abs() > burst {
            reasons.push(Reason {
                rule: Rule::BurstLimited,
                detail: format!("{count} of {} at once", surplus.abs()),
            });
        }
        Next::Send(action, reasons, Step::Manage(frozen))
    }

    /// Names the pods to make.
    fn create(&mut self, id: SetId, count: usize) -> Action {
        let (generate_name, names) = self.index.choose_names(id, count);
        Action::Create {
            names,
            generate_name,
            slow_start_initial: self.config.slow_start_initial.max(1),
        }
    }

    /// Chooses the pods that go.
    fn delete(&mut self, now: Timestamp, id: SetId, count: usize) -> Action {
        let related = self.index.related_by_node(id);
        let mut pods: Vec<_> = self.index.active_pods(id).collect();
        if count >= pods.len() {
            pods.sort_unstable_by_key(|(_, pod)| &pod.name);
        }
        let candidates = pods
            .into_iter()
            .map(|(id, pod)| candidate(id, pod, &related));
        let chosen = rank::choose(candidates, count, now);
        let ratios = chosen.iter().filter_map(|chosen| chosen.age_ratio);
        self.reports.extend(ratios.map(Report::DeletionAgeRatio));
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

fn candidate<'a>(
    id: PodId,
    pod: &'a Entry,
    related: &HashMap<Option<&str>, u32>,
) -> Candidate<'a, PodId> {
    let node = pod.node.as_deref();
    Candidate {
        id,
        node,
        phase: pod.phase,
        ready: pod.ready,
        deletion_cost: pod.deletion_cost,
        rank: related.get(&node).copied().unwrap_or(0),
        restarts: pod.restarts,
        sidecar_restarts: pod.sidecar_restarts,
        created: pod.created,
        uid: &pod.uid,
    }
}

impl Index {
    /// Returns the names of the next `count` pods of a ReplicaSet, and what `generateName` is. Fewer only where the cluster's names run out.
    fn choose_names(&mut self, id: SetId, count: usize) -> (Arc<str>, Vec<Arc<str>>) {
        let Some(set) = self.set_mut(id) else {
            return ("".into(), Vec::new());
        };
        let generate_name = Arc::clone(&set.generate_name);
        let namespace = Arc::clone(&set.object.key.namespace);
        let fresh = NameCursor::new(&set.object.key.uid);
        let mut cursor = std::mem::replace(&mut set.cursor, fresh);
        let taken = |name: &str| self.pod_named(&namespace, name).is_some();
        let base = names::base(&generate_name);
        let names = (0..count).map_while(|_| cursor.next(base, taken)).collect();
        if let Some(set) = self.set_mut(id) {
            set.cursor = cursor;
        }
        (generate_name, names)
    }
}

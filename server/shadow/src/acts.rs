//! The acts of the other controller on the pods of a ReplicaSet that are not judged yet.

use std::{collections::BTreeMap, sync::Arc};

use server_core::{Controller, KnownSet, Reason, Replica, Span, Timestamp, Uid, wording::count};

use crate::{
    allowance::Allowance,
    difference::{Agreements, Departure, Finding, LAG, LATE, SETTLED, Side, Subject},
    past::Past,
    search::{Gone, Search, Verdict},
};

/// The maximum number of pods that a difference names.
const NAMES_MAX: usize = 5;
/// The maximum number of deleted pods that wait for judgement. Further pods are not compared.
const GONE_MAX: usize = 1_000;
/// The maximum number of changes of owner that are judged again.
const DOUBTFUL_MAX: usize = 100;
/// The memory of a kept pod, in bytes.
const POD_BYTES: usize = 200;

/// The acts, and the rest of them after each judgement: acts that no view explains wait for late streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Acts {
    made: Option<Made>,
    /// When the first and the last pod of a quick succession were created: one decision can have created them.
    run: Option<(Timestamp, Timestamp)>,
    gone: Vec<Gone>,
    claims: Option<Claims>,
}

/// Created pods.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// When the first pod that is not judged was created.
    since: Timestamp,
    /// The maximum number of active pods just after a creation.
    most: i32,
    /// The time of that maximum.
    at: Timestamp,
    /// Whether a search for a view with this number of desired pods has failed.
    tried: bool,
}

/// Pods that changed owner.
#[derive(Clone, Debug)]
struct Claims {
    since: Timestamp,
    /// The pods whose change had no visible reason.
    doubtful: BTreeMap<Uid, Doubtful>,
}

/// A pod that changed owner without a visible reason.
#[derive(Clone, Debug)]
pub(super) struct Doubtful {
    pub(super) name: Arc<str>,
    /// Whether a ReplicaSet has adopted it that does not select it, not even by its labels at that time.
    pub(super) is_stranger: bool,
}

/// The input of judgements, and their results.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    pub(super) now: Timestamp,
    pub(super) controller: &'a Controller,
    pub(super) past: &'a Past,
    pub(super) looks: &'a mut usize,
    pub(super) allowance: &'a mut Allowance,
    pub(super) agreements: &'a mut Agreements,
    pub(super) findings: Vec<Finding>,
    pub(super) deleted_by_others: u64,
}

// === impl Acts ===

impl Acts {
    /// Adds a created pod, and the number of active pods with it.
    pub(super) fn make(&mut self, now: Timestamp, active: i32) {
        let run = self.run;
        let run = run.filter(|(_, last)| now <= last.plus(SETTLED).plus(SETTLED));
        self.run = Some((run.map_or(now, |(first, _)| first), now));
        let made = self.made.get_or_insert(Made {
            since: now,
            most: active,
            at: now,
            tried: false,
        });
        if active > made.most {
            (made.most, made.at) = (active, now);
        }
    }

    pub(super) fn go(&mut self, gone: Gone) {
        if self.gone.len() < GONE_MAX {
            self.gone.push(gone);
        }
    }

    /// Adds a change of owner; a change that was not due is doubtful.
    pub(super) fn claim(&mut self, now: Timestamp, doubtful: Option<(Uid, Doubtful)>) {
        let claims = self.claims.get_or_insert_with(|| Claims {
            since: now,
            doubtful: BTreeMap::new(),
        });
        if let Some((uid, pod)) = doubtful.filter(|_| claims.doubtful.len() < DOUBTFUL_MAX) {
            claims.doubtful.insert(uid, pod);
        }
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        let made = self.made.as_ref().map(Made::due);
        let claims = self.claims.as_ref().map(|it| it.since.plus(SETTLED));
        let gone = self.gone.iter().map(Gone::due).min();
        [made, claims, gone].into_iter().flatten().min()
    }

    pub(super) fn bytes(&self) -> usize {
        let doubtful = self.claims.as_ref().map_or(0, |it| it.doubtful.len());
        (self.gone.len() + doubtful) * POD_BYTES
    }

    /// Judges the acts that are due. Returns when to judge the unexplained acts again.
    pub(super) fn judge(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) -> Option<Timestamp> {
        if let Some(made) = self.made.take_if(|made| made.due() <= judge.now) {
            self.made = self.judge_made(judge, set, made);
        }
        self.judge_gone(judge, set);
        let claims = self.judge_claims(judge, set);
        let made = self.made.as_ref().map(Made::due);
        let gone = self.gone.iter().map(Gone::due).min();
        [made, claims, gone].into_iter().flatten().min()
    }

    /// Judges whether more pods were created than any view desires. Returns what to judge again.
    fn judge_made(&self, judge: &mut Judge<'_>, set: &KnownSet<'_>, made: Made) -> Option<Made> {
        // Acts that the events have not paid for are not compared.
        *judge.looks = judge.looks.checked_sub(judge.past.len())?;
        let own = &set.object().key.uid;
        let numbers = judge.past.numbers(own, set.wanted());
        let begun = self.run.map_or(made.at, |(first, _)| first).min(made.at);
        let (_, wanted) = numbers.between(begun.plus(Span(-LAG.0)), made.at.plus(LAG));
        if made.most <= wanted {
            judge.agreements.agree(Subject::Count);
        } else if judge.now < made.at.plus(LATE) {
            let tried = true;
            return Some(Made { tried, ..made });
        } else {
            let decided = format!("at most {} at a time", count(wanted, "pod"));
            let done = count(made.most, "pod").to_string();
            judge.find(Finding::new(Subject::Count, decided, done));
        }
        None
    }

    /// Judges whether some view chooses the deleted pods.
    fn judge_gone(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) {
        let now = judge.now;
        let (due, mut rest): (Vec<_>, Vec<_>) =
            self.gone.drain(..).partition(|gone| gone.due() <= now);
        if !due.is_empty() {
            let search = Search::new(judge.past, *set, &due, now, judge.looks);
            let verdicts = search.run();
            rest.extend(judge.sort_out(set, due.into_iter().zip(verdicts)));
        }
        rest.sort_unstable_by_key(|gone| gone.number);
        self.gone = rest;
    }

    /// Judges the changes of owner without a reason again: the owners that are still wrong are differences.
    fn judge_claims(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) -> Option<Timestamp> {
        let claims = self.claims.as_ref()?;
        if judge.now < claims.since.plus(SETTLED) {
            return Some(claims.since.plus(SETTLED));
        }
        let wrong = claims.still_wrong(judge.controller, set);
        if wrong.is_empty() {
            judge.agreements.agree(Subject::Adoption);
        } else if judge.now < claims.since.plus(LATE) {
            return Some(claims.since.plus(LATE));
        } else {
            let done = "changed the owner without a reason";
            judge.find(Finding::new(Subject::Adoption, listed(&wrong), done));
        }
        self.claims = None;
        None
    }
}

// === impl Made ===

impl Made {
    fn due(&self) -> Timestamp {
        if self.tried {
            self.at.plus(LATE)
        } else {
            self.since.plus(SETTLED)
        }
    }
}

// === impl Claims ===

impl Claims {
    /// Returns the corrections for the doubtful pods whose owner contradicts their labels.
    fn still_wrong(&self, controller: &Controller, set: &KnownSet<'_>) -> Vec<String> {
        let key = &set.object().key;
        let Ok(selector) = &set.object().selector else {
            return Vec::new();
        };
        let wrong = self.doubtful.iter().filter_map(|(uid, doubtful)| {
            let Doubtful { name, is_stranger } = doubtful;
            let pod = controller.inspect().pod(&key.namespace, name);
            let pod = pod.filter(|pod| pod.uid == *uid && pod.state.is_active());
            let Some(pod) = pod else {
                // A surplus pod is often deleted at once, and then there is no pod to release.
                return is_stranger.then(|| format!("leave {name} alone"));
            };
            let selected = selector.matches(&pod.labels);
            match &pod.controller {
                None if selected => Some(format!("adopt {name}")),
                Some(owner) if owner.uid == key.uid && !selected => Some(format!("release {name}")),
                None | Some(_) => None,
            }
        });
        let mut wrong: Vec<_> = wrong.collect();
        wrong.sort_unstable();
        wrong
    }
}

// === impl Judge ===

impl Judge<'_> {
    /// Counts the results of a search, and reports the pods that stay unexplained. Returns the pods to search for again.
    fn sort_out(
        &mut self,
        set: &KnownSet<'_>,
        found: impl Iterator<Item = (Gone, Verdict)>,
    ) -> Vec<Gone> {
        let (mut again, mut strange, mut explained) = (Vec::new(), Vec::new(), 0);
        for (gone, verdict) in found {
            match verdict {
                Verdict::Explained => explained += 1,
                Verdict::ByOthers | Verdict::Unexplained(_) if !gone.tried => {
                    let tried = true;
                    again.push(Gone { tried, ..gone });
                }
                Verdict::ByOthers => self.deleted_by_others += 1,
                // Acts that the events have not paid for are not compared.
                Verdict::Unknown => {}
                Verdict::Unexplained(surplus) => strange.push((gone, surplus)),
            }
        }
        if explained > 0 {
            self.agreements.agree(Subject::Victims);
            self.allowance.agree();
        }
        if !strange.is_empty() {
            let finding = self.strange(set, &strange);
            self.find(finding);
        }
        again
    }

    /// Returns the difference for pods that no view explains.
    fn strange(&mut self, set: &KnownSet<'_>, strange: &[(Gone, usize)]) -> Finding {
        let (first, surplus) = &strange[0];
        let view = Search::view_before(self.past, set, first);
        let chosen = view.choice(first.at, *surplus);
        let survivors = chosen.iter();
        let survivors = survivors.filter(|(pod, _)| set.has_replica(&pod.name, &pod.uid));
        let why = |(pod, reason): &(&Replica, Reason)| format!("{} ({})", pod.name, reason.detail);
        let (pods, whys): (Vec<_>, Vec<_>) = survivors
            .map(|chosen| (chosen.0.name.to_string(), why(chosen)))
            .unzip();
        let gone: Vec<_> = strange.iter().map(|(it, _)| it.name.to_string()).collect();
        let departure = self.allowance.take().then_some(Departure::DeletedByOthers);
        // If all chosen pods are deleted, others were deleted with them.
        let (subject, decided) = if whys.is_empty() {
            (Subject::Count, "delete no more pods".to_owned())
        } else {
            (Subject::Victims, format!("delete {}", listed(&whys)))
        };
        let done = format!("deleted {}", listed(&gone));
        let side = |text, mut pods: Vec<String>| {
            pods.truncate(NAMES_MAX);
            Side { text, pods }
        };
        Finding {
            subject,
            decided: side(decided, pods),
            done: side(done, gone),
            departure,
        }
    }

    /// Returns the departure that explains missing acts in a namespace that is being deleted.
    pub(super) fn namespace_ending(&mut self, set: &KnownSet<'_>) -> Option<Departure> {
        let namespace = &set.object().key.namespace;
        let inspect = self.controller.inspect();
        let ends = inspect.is_namespace_ending(namespace, self.looks);
        ends.then_some(Departure::NamespaceEnding)
    }

    pub(super) fn find(&mut self, finding: Finding) {
        self.agreements.differ(&finding);
        self.findings.push(finding);
    }
}

fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

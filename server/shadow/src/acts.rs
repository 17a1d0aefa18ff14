//! What the other controller did with the pods of a ReplicaSet and is not judged yet.

use std::{collections::BTreeMap, sync::Arc};

use server_core::{Controller, KnownSet, Span, Timestamp, Uid, wording::count};

use crate::{
    allowance::Allowance,
    difference::{Agreements, Departure, Finding, LAG, LATE, SETTLED, Side, Subject},
    past::Past,
    search::{Gone, Search, Verdict},
};

/// How many pods a difference names.
const NAMES_MAX: usize = 5;
/// How many pods that went wait to be judged. Where more go, the others are not compared.
const GONE_MAX: usize = 1_000;
/// How many changes of owner are looked at again.
const DOUBTFUL_MAX: usize = 100;
/// What a pod takes in memory that is kept.
const POD_BYTES: usize = 200;

/// The acts, and what is left of them after each judgement: what no view explains waits for streams that are late.
#[derive(Clone, Debug, Default)]
pub(super) struct Acts {
    made: Option<Made>,
    /// When the first and the last of the pods were made that were made one soon after the other: they can have been decided at once.
    run: Option<(Timestamp, Timestamp)>,
    gone: Vec<Gone>,
    claims: Option<Claims>,
}

/// Pods that were made.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// When the first was that is not judged.
    since: Timestamp,
    /// The most that were active just after one was made.
    most: i32,
    /// When that was.
    at: Timestamp,
    /// Whether a view that wants so many was looked for in vain.
    tried: bool,
}

/// Pods that changed owner.
#[derive(Clone, Debug)]
struct Claims {
    since: Timestamp,
    /// Those for which no reason could be seen then.
    doubtful: BTreeMap<Uid, Doubtful>,
}

/// A pod that changed owner without a reason that could be seen.
#[derive(Clone, Debug)]
pub(super) struct Doubtful {
    pub(super) name: Arc<str>,
    /// Whether it was adopted by a ReplicaSet that does not select it, not even by the labels that it had then.
    pub(super) is_stranger: bool,
}

/// Where judgements find what they need, and leave what comes of them.
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
    /// Notes that a pod was made, and how many are active with it.
    pub(super) fn make(&mut self, now: Timestamp, active: i32) {
        let run = self
            .run
            .filter(|(_, last)| now <= last.plus(SETTLED).plus(SETTLED));
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

    /// Notes a pod that was deleted.
    pub(super) fn go(&mut self, gone: Gone) {
        if self.gone.len() < GONE_MAX {
            self.gone.push(gone);
        }
    }

    /// Notes a change of owner; one that was not due is doubtful.
    pub(super) fn claim(&mut self, now: Timestamp, doubtful: Option<(Uid, Doubtful)>) {
        let claims = self.claims.get_or_insert_with(|| Claims {
            since: now,
            doubtful: BTreeMap::new(),
        });
        if let Some((uid, pod)) = doubtful.filter(|_| claims.doubtful.len() < DOUBTFUL_MAX) {
            claims.doubtful.insert(uid, pod);
        }
    }

    /// Returns when they are to be judged next.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let made = self.made.as_ref().map(Made::due);
        let claims = self
            .claims
            .as_ref()
            .map(|claims| claims.since.plus(SETTLED));
        let gone = self.gone.iter().map(Gone::due).min();
        [made, claims, gone].into_iter().flatten().min()
    }

    /// Returns about how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        let doubtful = self.claims.as_ref().map_or(0, |it| it.doubtful.len());
        (self.gone.len() + doubtful) * POD_BYTES
    }

    /// Judges what is due. Returns when to look again at what no view explains yet.
    pub(super) fn judge(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) -> Option<Timestamp> {
        let made = self.judge_made(judge, set);
        self.judge_gone(judge, set);
        let claims = self.judge_claims(judge, set);
        let gone = self.gone.iter().map(Gone::due).min();
        [made, claims, gone].into_iter().flatten().min()
    }

    /// Judges whether more pods were made than any view wants.
    fn judge_made(&mut self, judge: &mut Judge<'_>, set: &KnownSet<'_>) -> Option<Timestamp> {
        let made = self.made.as_mut()?;
        if judge.now < made.due() {
            return Some(made.due());
        }
        let Some(left) = judge.looks.checked_sub(judge.past.len()) else {
            // Whatever the events have not paid for is not compared.
            self.made = None;
            return None;
        };
        *judge.looks = left;
        let own = &set.object().key.uid;
        let numbers = judge.past.numbers(own, set.wanted());
        let begun = self.run.map_or(made.at, |(first, _)| first).min(made.at);
        let (_, wanted) = numbers.between(begun.plus(Span(-LAG.0)), made.at.plus(LAG));
        if made.most <= wanted {
            judge.agreements.agree(Subject::Count);
        } else if judge.now < made.at.plus(LATE) {
            made.tried = true;
            return Some(made.due());
        } else {
            let decided = format!("at most {} at a time", count(wanted, "pod"));
            judge.find(Finding::new(
                Subject::Count,
                decided,
                count(made.most, "pod"),
            ));
        }
        self.made = None;
        None
    }

    /// Judges whether the pods that went are those that some view chooses.
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

    /// Looks again at changes of owner that nothing had called for: what is so still is a difference.
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
    /// Returns when a view is looked for next.
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
    /// Returns what is to be done with the doubtful pods whose owner is not what their labels call for.
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
                // One too many is often deleted at once, and then there is nobody to release it.
                return is_stranger.then(|| format!("leave {name} alone"));
            };
            let selected = selector.matches(&pod.labels);
            match &pod.controller {
                None => selected.then(|| format!("adopt {name}")),
                Some(owner) => {
                    let is_own = owner.uid == key.uid;
                    (is_own && !selected).then(|| format!("release {name}"))
                }
            }
        });
        let mut wrong: Vec<_> = wrong.collect();
        wrong.sort_unstable();
        wrong
    }
}

// === impl Judge ===

impl Judge<'_> {
    /// Counts what a search has found, and tells of what stays unexplained. Returns what is to be looked at again.
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
                // Whatever the events have not paid for is not compared.
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

    /// Returns the difference that pods are which no view explains.
    fn strange(&mut self, set: &KnownSet<'_>, strange: &[(Gone, usize)]) -> Finding {
        let (first, surplus) = &strange[0];
        let view = Search::view_before(self.past, set, (first.number, first.at));
        let chosen = view.choice(first.at, *surplus);
        let survivors = chosen
            .iter()
            .filter(|(pod, _)| set.has_replica(&pod.name, &pod.uid.to_uid()));
        let (pods, whys): (Vec<_>, Vec<_>) = survivors
            .map(|(pod, reason)| {
                let why = format!("{} ({})", pod.name, reason.detail);
                (pod.name.to_string(), why)
            })
            .unzip();
        let gone: Vec<_> = strange.iter().map(|(it, _)| it.name.to_string()).collect();
        let departure = self.allowance.take().then_some(Departure::DeletedByOthers);
        // Where none of those that were chosen stays, others went beside them.
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

    /// Returns the departure that explains what is not done in a namespace that ends.
    pub(super) fn namespace_ending(&mut self, set: &KnownSet<'_>) -> Option<Departure> {
        let namespace = &set.object().key.namespace;
        let ends = self
            .controller
            .inspect()
            .is_namespace_ending(namespace, self.looks);
        ends.then_some(Departure::NamespaceEnding)
    }

    /// Counts a difference and keeps it.
    pub(super) fn find(&mut self, finding: Finding) {
        self.agreements.differ(&finding);
        self.findings.push(finding);
    }
}

/// Lists the first of many names.
fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

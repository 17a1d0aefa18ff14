//! Each cause from real messages of the programs, in one table, and a check that no cause is missing.

use decree_api::v1::ReplicaSetState;
use decree_core::{ActionKind, BatchId, FailureClass, Key, OutcomeCounts, Uid};

use super::*;

mod table;

use table::{BLOCKED, FLAPPING, PASSING, REFUSALS, failure, rows, rule};

const NOW: Timestamp = Timestamp::from_seconds(1_000);

/// Returns a ReplicaSet with these numbers of pods and these reasons, unconverged for this number of seconds.
fn set(
    [replicas, active, ready, available]: [i32; 4],
    seconds: Option<i64>,
    reasons: &[(Rule, &str)],
) -> v1::ReplicaSetSummary {
    let surges = reasons.iter().any(|(rule, _)| *rule == Rule::Surge);
    let reasons = reasons.iter().map(|(rule, detail)| v1::Reason {
        rule: (*rule).into(),
        detail: (*detail).to_owned(),
    });
    v1::ReplicaSetSummary {
        replica_set: Some(v1::ObjectRef {
            namespace: "payments".to_owned(),
            name: "ledger".to_owned(),
            uid: "u".to_owned(),
        }),
        replicas,
        active,
        ready,
        available,
        reasons: reasons.collect(),
        in_advance: if surges { 1 } else { 0 },
        diverge_time: seconds.map(|seconds| prost_types::Timestamp {
            seconds: 1_000 - seconds,
            nanos: 0,
        }),
        ..v1::ReplicaSetSummary::default()
    }
}

/// Returns the result of an attempt: the action, the kind of its failure, and the cluster's message.
fn answered(action: ActionKind, failure: Option<(FailureClass, &str)>) -> Answered {
    let (class, words) = failure.unzip();
    Answered {
        key: Key {
            namespace: "payments".into(),
            name: "ledger".into(),
            uid: Uid("u".into()),
        },
        at: NOW,
        batch: BatchId(1),
        action,
        counts: OutcomeCounts::default(),
        failure: class,
        message: words.unwrap_or_default().to_owned(),
    }
}

fn known(attempt: Option<&Answered>) -> Known<'_> {
    Known {
        now: NOW,
        failures: u32::from(attempt.is_some()),
        attempt,
        unready: None,
        flapping: None,
    }
}

/// Returns the cause of a ReplicaSet: severity, sentence, group and command.
fn told(summary: &v1::ReplicaSetSummary, known: &Known<'_>) -> (Severity, [String; 3]) {
    let cause = cause(summary, known);
    let severity = cause.severity();
    (severity, [cause.text, cause.group, cause.next_command])
}

#[test]
fn refusals_of_kubernetes_have_a_sentence_a_group_and_a_command() {
    let lacks = set([10, 7, 7, 7], Some(700), &[(Rule::Backoff, "9 failures")]);
    for [refusal, expected @ ..] in rows::<4>(REFUSALS) {
        let (class, words) = failure(&refusal);
        let attempt = answered(ActionKind::Create, Some((class, words)));
        let (severity, said) = told(&lacks, &known(Some(&attempt)));
        assert_eq!((severity, &said), (Severity::Blocked, &expected));
        // A session without an attempt knows only the condition, without a class.
        let mut before = lacks.clone();
        before.failure = words.to_owned();
        assert_eq!(told(&before, &known(None)), (severity, said), "{words}");
    }
}

#[test]
fn refusals_say_what_was_refused() {
    let surplus = set([10, 12, 12, 12], Some(1), &[(Rule::Backoff, "")]);
    for (action, what) in [
        (ActionKind::Delete, "to delete pods"),
        (ActionKind::Claim, "to adopt or release pods"),
        (ActionKind::WriteStatus, "the status"),
        (ActionKind::Advise, "deletion costs"),
    ] {
        let failure = Some((FailureClass::Forbidden, "pods \"a\" is forbidden: no"));
        let attempt = answered(action, failure);
        let (_, [said, ..]) = told(&surplus, &known(Some(&attempt)));
        assert_eq!(said, format!("The API server refuses {what}: no"));
    }
    let failure =
        "unable to delete pods: admission webhook \"w\" denied the request: no".to_owned();
    let condition = v1::ReplicaSetSummary { failure, ..surplus };
    let (_, [said, ..]) = told(&condition, &known(None));
    assert_eq!(said, "A webhook refuses to delete pods: no");
}

#[test]
fn pods_that_are_not_ready_are_told_with_the_first_reason_of_active_ones() {
    let mut summary = set([3, 3, 1, 1], Some(1), &[]);
    let group = |reason: &str, ended| v1::NotReady {
        reason: reason.to_owned(),
        pods: 1,
        ended,
    };
    summary.not_ready = vec![group("Evicted", true), group("ErrImage\u{202e}Pull", false)];
    let cause = |summary: &_| {
        let [text, group, _] = told(summary, &known(None)).1;
        [text, group]
    };
    let expected = [
        "2 of 3 pods not ready: ErrImagePull",
        "Pods not ready: ErrImagePull",
    ];
    assert_eq!(cause(&summary), expected);
    summary.not_ready.truncate(1);
    assert_eq!(cause(&summary), ["2 of 3 pods not ready", ""]);
}

#[test]
fn what_passes_is_working_and_slow_after_a_minute() {
    for [state, text, command] in rows::<3>(PASSING) {
        let mut state = state.split(" | ");
        let words: Vec<_> = state.next().expect("a state").split(' ').collect();
        let [counts @ .., name] = &words[..] else {
            panic!("{words:?}")
        };
        let counts = [0, 1, 2, 3].map(|at: usize| counts[at].parse::<i32>().expect("a count"));
        let attempt = state
            .next()
            .map(|refusal| answered(ActionKind::Create, Some(failure(refusal))));
        let known = Known {
            unready: (counts[2] < counts[1]).then_some("ledger-7qz9m"),
            ..known(attempt.as_ref())
        };
        for (seconds, severity) in [
            (0, Severity::Working),
            (59, Severity::Working),
            (60, Severity::Slow),
        ] {
            let summary = set(counts, Some(seconds), &[(rule(name), "later")]);
            let (how, [said, _, next]) = told(&summary, &known);
            assert_eq!(
                (how, said.as_str(), next.as_str()),
                (severity, text.as_str(), command.as_str()),
                "{name}"
            );
        }
    }
}

#[test]
fn nodes_that_are_not_shown_have_a_command() {
    let awaited = set([2, 0, 0, 0], Some(1), &[(Rule::PartialView, NODES_AWAITED)]);
    let (severity, said) = told(&awaited, &known(None));
    let text = "The agent's list of nodes is not complete";
    assert_eq!(
        (severity, said),
        (
            Severity::Working,
            [text, text, "decree check --nodes"].map(str::to_owned)
        )
    );
}

#[test]
fn conflict_is_a_cause_if_it_comes_back_for_a_minute() {
    let words = "Operation cannot be fulfilled on resourcequotas \"compute\": the object has been modified.";
    let attempt = answered(ActionKind::Create, Some((FailureClass::Conflict, words)));
    let said = |seconds| {
        let lacks = set([2, 0, 0, 0], Some(seconds), &[(Rule::TooFewReplicas, "")]);
        told(&lacks, &known(Some(&attempt))).1[0].clone()
    };
    assert_eq!(said(59), "Creates 2 of 2 pods");
    let expected = format!("Writes keep conflicting: {}", words.trim_end_matches('.'));
    assert_eq!(said(60), expected);
}

#[test]
fn creates_that_are_slow_say_why_and_need_nobody() {
    let detail = "1000 of its pods have no node yet, so 20 of 19000 missing pods are created a second. If not, wait";
    let set = set(
        [20_000, 1_000, 0, 0],
        Some(1),
        &[(Rule::ManyUnassigned, detail)],
    );
    let (what, _) = detail.split_once(". ").expect("it has two sentences");
    let (severity, [text, ..]) = told(&set, &known(None));
    assert_eq!(severity, Severity::Working);
    assert_eq!(text, format!("Creates are slow: {what}"));
}

#[test]
fn what_needs_a_person_is_blocked_whatever_its_age() {
    for [reason, expected @ ..] in rows::<4>(BLOCKED) {
        let (name, words) = reason.split_once(':').expect("a rule");
        let reasons = [
            (Rule::Backoff, "2 failures"),
            (rule(name), words.trim_start()),
        ];
        let summary = set([7, 4, 4, 4], Some(1), &reasons);
        let (severity, said) = told(&summary, &known(None));
        assert_eq!((severity, said), (Severity::Blocked, expected));
    }
}

#[test]
fn desired_pods_that_go_up_and_down_are_the_cause_unless_pods_are_refused() {
    let converged = set([4; 4], None, &[(Rule::InSync, "")]);
    let lacks = set([4, 2, 2, 2], Some(1), &[(Rule::Backoff, "2 failures")]);
    let quota = "pods \"a\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=9, limited: pods=9";
    let refused = answered(ActionKind::Create, Some((FailureClass::Quota, quota)));
    for [told_of, text, command] in rows::<3>(FLAPPING) {
        let (changes, owner) = told_of.split_once('|').expect("an owner");
        let mut words = changes.split_whitespace();
        let flapping = Flapping {
            changes: words
                .next()
                .and_then(|it| it.parse().ok())
                .expect("a number"),
            least: 2,
            most: 4,
            managers: words.map(Into::into).collect(),
        };
        let owner = owner.trim().split_once(' ');
        let controller = owner.map(|(kind, name)| v1::OwnerReference {
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..v1::OwnerReference::default()
        });
        let flaps = |attempt| Known {
            flapping: Some(&flapping),
            ..known(attempt)
        };
        for summary in [&converged, &lacks] {
            let summary = v1::ReplicaSetSummary {
                controller: controller.clone(),
                ..summary.clone()
            };
            let expected = [text.clone(), String::new(), command.clone()];
            let cause = told(&summary, &flaps(None));
            assert_eq!(cause, (Severity::Blocked, expected));
        }
        let (_, [said, ..]) = told(&lacks, &flaps(Some(&refused)));
        assert_eq!(said, "Quota exceeded in payments: 9 of 9 pods");
        // The condition of an earlier attempt says nothing about a ReplicaSet in sync.
        let mut after = converged.clone();
        after.failure = quota.to_owned();
        let (_, [said, ..]) = told(&after, &flaps(None));
        assert!(said.starts_with("Desired changed"), "{said}");
    }
}

#[test]
fn what_has_converged_is_in_sync() {
    let converged = set([7, 7, 7, 7], None, &[(Rule::InSync, "")]);
    let known = known(None);
    let in_sync = |text: &str| {
        (
            Severity::InSync,
            [text.to_owned(), String::new(), String::new()],
        )
    };
    assert_eq!(told(&converged, &known), in_sync("In sync"));
    // The condition is of an earlier attempt.
    let mut after = converged;
    after.failure = "exceeded quota: pods".to_owned();
    assert_eq!(told(&after, &known), in_sync("In sync"));
    let deleted = set([7, 6, 6, 6], Some(700), &[(Rule::BeingDeleted, "")]);
    assert_eq!(
        told(&deleted, &known),
        in_sync("Being deleted: its pods are left alone")
    );
}

#[test]
fn refusal_is_no_cause_once_the_number_of_pods_is_right() {
    let words = "exceeded quota: pods";
    let attempt = answered(ActionKind::Create, Some((FailureClass::Quota, words)));
    let known = Known {
        failures: 0,
        ..known(Some(&attempt))
    };
    let mut unready = set([3, 3, 2, 2], Some(1), &[(Rule::InSync, "")]);
    unready.failure = words.to_owned();
    let (_, [said, ..]) = told(&unready, &known);
    assert_eq!(said, "1 of 3 pods not ready");
}

/// What the agent does not execute is no cause: the pods and the status, which another controller changes, are.
#[test]
fn severity_in_a_mode_without_effect_is_that_of_the_cluster() {
    use Severity::{Blocked, InSync, Slow, Working};
    let of = |counts, seconds, rule| set(counts, seconds, &[(rule, "a detail")]);
    let (few, many) = (Rule::TooFewReplicas, Rule::TooManyReplicas);
    let lacks = |seconds| of([7, 4, 4, 4], Some(seconds), few);
    let mut refused = lacks(1);
    // The other controller wrote it.
    refused.failure =
        "exceeded quota: pods, requested: pods=1, used: pods=9, limited: pods=9".into();
    let created = ["Creates 3 of 7 pods", "Missing: 3 of 7 pods"];
    let deleted = ["Deletes 2 of 9 pods", "Surplus: 2 of 9 pods"];
    let quota = ["Quota exceeded in payments: 9 of 9 pods"; 2];
    let same = ["In sync"; 2];
    let unready = ["4 of 7 pods not ready"; 2];
    let alone = ["Quarantined: a detail"; 2];
    // A ReplicaSet; then its severity, and its causes where decisions are executed and where not.
    let table = [
        (of([7; 4], None, Rule::InSync), InSync, same),
        (of([7; 4], None, Rule::StatusDiffers), InSync, same),
        (lacks(1), Working, created),
        (lacks(60), Slow, created),
        (of([7, 9, 9, 9], Some(1), many), Working, deleted),
        (of([7, 7, 3, 3], Some(60), Rule::InSync), Slow, unready),
        (refused, Blocked, quota),
        (of([7; 4], None, Rule::Quarantined), Blocked, alone),
    ];
    let not_executed = answered(ActionKind::Create, None);
    for (mut summary, severity, [executed, not]) in table {
        for (mode, attempt, text) in [
            (v1::Mode::Enforce, None, executed),
            (v1::Mode::Shadow, Some(&not_executed), not),
            (v1::Mode::DryRun, Some(&not_executed), not),
        ] {
            summary.set_mode(mode);
            let known = Known {
                failures: 0,
                ..known(attempt)
            };
            let (how, [said, ..]) = told(&summary, &known);
            assert_eq!((how, said.as_str()), (severity, text), "{mode:?}");
        }
    }
}

#[test]
fn a_status_that_is_refused_blocks_what_has_converged() {
    let converged = set([7, 7, 7, 7], None, &[(Rule::Backoff, "3 failures")]);
    let failure = Some((
        FailureClass::Forbidden,
        "replicasets \"ledger\" is forbidden: no",
    ));
    let attempt = answered(ActionKind::WriteStatus, failure);
    let (severity, [said, ..]) = told(&converged, &known(Some(&attempt)));
    assert_eq!(
        (severity, said.as_str()),
        (Severity::Blocked, "The API server refuses the status: no")
    );
}

#[test]
fn advice_is_a_cause_only_where_it_is_refused() {
    let mut set = set([7, 7, 7, 7], None, &[(Rule::Backoff, "3 failures")]);
    set.set_mode(v1::Mode::Advise);
    let refused = Some((FailureClass::Forbidden, "pods \"a\" is forbidden: no"));
    for (failure, severity, expected) in [
        (
            refused,
            Severity::Blocked,
            "The API server refuses deletion costs: no",
        ),
        (None, Severity::InSync, "In sync"),
    ] {
        let attempt = answered(ActionKind::Advise, failure);
        let (how, [said, ..]) = told(&set, &known(Some(&attempt)));
        assert_eq!((how, said.as_str()), (severity, expected));
    }
}

#[test]
fn no_rule_state_or_mode_is_without_a_cause() {
    let rules = (0..1_000).filter_map(|number| Rule::try_from(number).ok());
    let rules: Vec<_> = rules.collect();
    let states = (0..100).filter_map(|number| ReplicaSetState::try_from(number).ok());
    let states: Vec<_> = states.collect();
    assert!(rules.len() > 25 && states.len() > 5);
    let modes = [
        v1::Mode::Enforce,
        v1::Mode::Shadow,
        v1::Mode::DryRun,
        v1::Mode::Advise,
    ];
    let counts = [
        [7, 7, 7, 7],
        [7, 4, 4, 4],
        [7, 9, 9, 9],
        [7, 7, 3, 3],
        [0, 0, 0, 0],
    ];
    for rule in rules {
        for (state, mode) in states
            .iter()
            .flat_map(|state| modes.map(|mode| (state, mode)))
        {
            for counts in counts {
                let mut summary = set(counts, Some(1), &[(rule, "words")]);
                summary.set_state(*state);
                summary.set_mode(mode);
                let (severity, [text, ..]) = told(&summary, &known(None));
                assert_ne!(severity, Severity::Unspecified, "{rule:?} {state:?}");
                assert!(
                    !text.is_empty() && !text.ends_with('.'),
                    "{rule:?} {state:?}: {text}"
                );
            }
        }
    }
}

#[test]
fn pods_in_advance_of_evictions_are_as_desired() {
    let why = "2 active pods, 1 desired: 1 in advance for a pod on cordoned node-a";
    let (severity, [said, ..]) = told(
        &set([1, 2, 2, 2], None, &[(Rule::Surge, why)]),
        &known(None),
    );
    let expected = "In sync: 1 in advance for a pod on cordoned node-a";
    assert_eq!((severity, &*said), (Severity::InSync, expected));
    let why = "1 active pod, 1 desired: 1 in advance for a pod on cordoned node-a";
    let lacking = set([1, 1, 1, 1], None, &[(Rule::Surge, why)]);
    let (severity, [said, ..]) = told(&lacking, &known(None));
    assert_eq!(
        (severity, &*said),
        (Severity::Working, "Creates 1 of 2 pods")
    );
}

//! Each cause from the words that the programs really write, in one table, and that none is missing.

use decree::v1::ReplicaSetState;
use server_core::{ActionKind, FailureClass};

use super::*;

const NOW: Timestamp = Timestamp::from_seconds(1_000);

/// Returns a ReplicaSet that wants so many pods, with counts and reasons, unconverged for so many seconds.
fn set(
    [replicas, active, ready, available]: [i32; 4],
    seconds: Option<i64>,
    reasons: &[(Rule, &str)],
) -> v1::ReplicaSetSummary {
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
        unconverged_since: seconds.map(|seconds| prost_types::Timestamp {
            seconds: 1_000 - seconds,
            nanos: 0,
        }),
        ..v1::ReplicaSetSummary::default()
    }
}

fn known(attempt: Option<Attempt<'_>>) -> Known<'_> {
    Known {
        mode: v1::Mode::Enforce,
        now: NOW,
        failures: u32::from(attempt.is_some()),
        attempt,
        unready: None,
    }
}

/// Returns what is said of a ReplicaSet: severity, sentence, group and command.
fn told(summary: &v1::ReplicaSetSummary, known: &Known<'_>) -> (Severity, [String; 3]) {
    let cause = cause(summary, known);
    let severity = cause.severity();
    (severity, [cause.text, cause.group, cause.next_command])
}

/// Words of the API server, its plugins and webhooks: the class that the agent finds in them, sentence, group and command. They are of
/// Kubernetes 1.34 to 1.36.
const REFUSALS: [(FailureClass, &str, [&str; 3]); 17] = [
    (
        FailureClass::Quota,
        "pods \"ledger-7qz9m\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=404, limited: pods=300",
        [
            "Quota exceeded in payments: 404 of 300 pods",
            "Quota exceeded in payments: at most 300 pods",
            "kubectl -n payments describe resourcequota",
        ],
    ),
    (
        FailureClass::Quota,
        "pods \"a\" is forbidden: exceeded quota: all, requested: count/pods=1, used: count/pods=14, limited: count/pods=14",
        [
            "Quota exceeded in payments: 14 of 14 pods",
            "Quota exceeded in payments: at most 14 pods",
            "kubectl -n payments describe resourcequota",
        ],
    ),
    (
        FailureClass::Quota,
        "pods \"a\" is forbidden: exceeded quota: compute, requested: requests.cpu=200m,requests.memory=1Gi, used: requests.cpu=1900m,requests.memory=8Gi, limited: requests.cpu=2,requests.memory=8Gi",
        [
            "Quota exceeded in payments: requests.cpu 1900m of 2, 200m more needed",
            "Quota exceeded in payments: requests.cpu at most 2",
            "kubectl -n payments describe resourcequota",
        ],
    ),
    (
        FailureClass::Quota,
        "exceeded quota: pods",
        [
            "Quota exceeded in payments: pods",
            "Quota exceeded in payments",
            "kubectl -n payments describe resourcequota",
        ],
    ),
    (
        FailureClass::Quota,
        "exceeded quota: p, requested: pods=1, used: pods=$(reboot), limited: pods=10",
        [
            "Quota exceeded in payments: p, requested: pods=1, used: pods=$(reboot), limited: pods=10",
            "Quota exceeded in payments",
            "kubectl -n payments describe resourcequota",
        ],
    ),
    (
        FailureClass::Quota,
        "pods \"a\" is forbidden: failed quota: compute: must specify limits.cpu for: main; limits.memory for: main",
        [
            "Quota in payments refuses pods: must specify limits.cpu for: main; limits.memory for: main",
            "Quota in payments refuses pods",
            "kubectl -n payments describe resourcequota",
        ],
    ),
    (
        FailureClass::Quota,
        "pods \"a\" is forbidden: maximum cpu usage per Container is 500m, but limit is 1",
        [
            "Limit range in payments refuses pods: maximum cpu usage per Container is 500m, but limit is 1",
            "Limit range in payments refuses pods",
            "kubectl -n payments describe limitrange",
        ],
    ),
    (
        FailureClass::Forbidden,
        "admission webhook \"validate.policy.example.com\" denied the request: the image\n must come from \u{1b}[31mregistry.example.com.",
        [
            "A webhook refuses pods: the image must come from [31mregistry.example.com",
            "Webhook validate.policy.example.com refuses pods",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        ],
    ),
    (
        FailureClass::Invalid,
        "admission webhook \"w.example.com\" denied the request without explanation",
        [
            "A webhook refuses pods: without explanation",
            "Webhook w.example.com refuses pods",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        ],
    ),
    (
        FailureClass::Unavailable,
        "Internal error occurred: failed calling webhook \"w.example.com\": failed to call webhook: Post \"https://w.policy.svc:443/v?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused",
        [
            "Webhook w.example.com does not respond: failed to call webhook: Post \"https://w.policy.svc:443/v?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused",
            "Webhook w.example.com does not respond",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        ],
    ),
    (
        FailureClass::Forbidden,
        "pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false)",
        [
            "Pod Security restricted:latest refuses pods: allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false)",
            "Pod Security restricted:latest refuses pods in payments",
            "kubectl get namespace payments --show-labels",
        ],
    ),
    (
        FailureClass::Invalid,
        "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'all' denied request: failed expression: !object.spec.containers.exists(c, c.image.endsWith(':latest'))",
        [
            "Admission policy no-latest refuses pods: failed expression: !object.spec.containers.exists(c, c.image.endsWith(':latest'))",
            "Admission policy no-latest refuses pods",
            "kubectl get validatingadmissionpolicies",
        ],
    ),
    (
        FailureClass::NamespaceTerminating,
        "pods \"a\" is forbidden: unable to create new content in namespace payments because it is being terminated",
        [
            "Namespace payments is being deleted",
            "Namespace payments is being deleted",
            "kubectl get namespace payments -o yaml",
        ],
    ),
    (
        FailureClass::Forbidden,
        "pods \"a\" is forbidden: error looking up service account payments/robot: serviceaccount \"robot\" not found",
        [
            "Service account payments/robot does not exist",
            "Service account payments/robot does not exist",
            "kubectl -n payments get serviceaccounts",
        ],
    ),
    (
        FailureClass::Forbidden,
        "pods is forbidden: User \"system:serviceaccount:decree-system:decree-agent\" cannot create resource \"pods\" in API group \"\" in the namespace \"payments\"",
        [
            "The agent may not create pods: system:serviceaccount:decree-system:decree-agent has no permission",
            "The agent may not create pods",
            "decree check",
        ],
    ),
    (
        FailureClass::Forbidden,
        "pods \"a\" is forbidden: no PriorityClass with name high was found",
        [
            "The API server refuses pods: no PriorityClass with name high was found",
            "",
            "kubectl -n payments describe replicaset ledger",
        ],
    ),
    (
        FailureClass::Invalid,
        "Pod \"a\" is invalid: spec.containers[0].image: Required value",
        [
            "The API server refuses pods: spec.containers[0].image: Required value",
            "",
            "kubectl -n payments describe replicaset ledger",
        ],
    ),
];

#[test]
fn refusals_of_kubernetes_have_a_sentence_a_group_and_a_command() {
    let lacks = set([10, 7, 7, 7], Some(700), &[(Rule::Backoff, "9 failures")]);
    for (class, words, expected) in REFUSALS {
        let attempt = Attempt {
            action: ActionKind::Create,
            failure: Some((class, words)),
        };
        let (severity, said) = told(&lacks, &known(Some(attempt)));
        assert_eq!(
            (severity, said.each_ref().map(String::as_str)),
            (Severity::Blocked, expected)
        );
        // A session that has made no attempt yet knows only the condition, without a class.
        let mut before = lacks.clone();
        before.failure = words.to_owned();
        assert_eq!(told(&before, &known(None)), (severity, said), "{words}");
    }
}

#[test]
fn refusals_say_what_was_refused() {
    let surplus = set([10, 12, 12, 12], Some(1), &[(Rule::Backoff, "")]);
    for (action, expected) in [
        (
            ActionKind::Delete,
            "The API server refuses to delete pods: no",
        ),
        (
            ActionKind::Claim,
            "The API server refuses to adopt or release pods: no",
        ),
        (
            ActionKind::WriteStatus,
            "The API server refuses the status: no",
        ),
    ] {
        let failure = Some((FailureClass::Forbidden, "pods \"a\" is forbidden: no"));
        let (_, [said, ..]) = told(&surplus, &known(Some(Attempt { action, failure })));
        assert_eq!(said, expected);
    }
    let failure =
        "unable to delete pods: admission webhook \"w\" denied the request: no".to_owned();
    let condition = v1::ReplicaSetSummary { failure, ..surplus };
    let (_, [said, ..]) = told(&condition, &known(None));
    assert_eq!(said, "A webhook refuses to delete pods: no");
}

#[test]
fn what_passes_is_working_and_slow_after_a_minute() {
    let failed = |class, words| {
        known(Some(Attempt {
            action: ActionKind::Create,
            failure: Some((class, words)),
        }))
    };
    let quiet = known(None);
    let unready = Known {
        unready: Some("ledger-7qz9m"),
        ..quiet
    };
    let cases = [
        (
            [10, 7, 7, 7],
            Rule::TooFewReplicas,
            quiet,
            "Creates 3 of 10 pods",
            "decree explain payments/ledger",
        ),
        (
            [10, 12, 12, 12],
            Rule::TooManyReplicas,
            quiet,
            "Deletes 2 of 12 pods",
            "decree explain payments/ledger",
        ),
        (
            [7, 7, 4, 4],
            Rule::InSync,
            unready,
            "3 of 7 pods not ready",
            "kubectl -n payments describe pod ledger-7qz9m",
        ),
        (
            [1, 1, 1, 0],
            Rule::AvailabilityCheck,
            quiet,
            "1 of 1 pod not available yet",
            "decree explain payments/ledger",
        ),
        (
            [7, 4, 4, 4],
            Rule::PartialView,
            quiet,
            "The agent's list is not complete",
            "",
        ),
        (
            [7, 4, 4, 4],
            Rule::ViewOlderThanWrite,
            quiet,
            "The agent's list does not show the last write",
            "",
        ),
        (
            [7, 4, 4, 4],
            Rule::Throttled,
            quiet,
            "The API server asks to wait: later",
            "",
        ),
        (
            [7, 4, 4, 4],
            Rule::Backoff,
            failed(FailureClass::Throttled, "later."),
            "The API server asks to wait: later",
            "",
        ),
        (
            [7, 4, 4, 4],
            Rule::Backoff,
            failed(FailureClass::Unavailable, "etcd"),
            "The API server does not respond: etcd",
            "",
        ),
        (
            [7, 4, 4, 4],
            Rule::Backoff,
            failed(FailureClass::Timeout, ""),
            "The API server does not respond",
            "",
        ),
        (
            [7, 4, 4, 4],
            Rule::Backoff,
            failed(FailureClass::Conflict, "no"),
            "Creates 3 of 7 pods",
            "decree explain payments/ledger",
        ),
    ];
    for (counts, rule, known, text, command) in cases {
        for (seconds, severity) in [
            (0, Severity::Working),
            (59, Severity::Working),
            (60, Severity::Slow),
        ] {
            let summary = set(counts, Some(seconds), &[(rule, "later")]);
            let (how, [said, _, next]) = told(&summary, &known);
            assert_eq!(
                (how, said.as_str(), next.as_str()),
                (severity, text, command),
                "{rule:?}"
            );
        }
    }
}

#[test]
fn what_needs_a_person_is_blocked_whatever_its_age() {
    let held = |scope: &str, detail: &str| {
        format!(
            "deletes in {scope} are held since 2026-05-01T12:00:00Z: {detail}; resume with: rm -rf /"
        )
    };
    let over = "11 deletes in a minute, 10 are allowed";
    let other = "another controller is at work: kube-controller-manager created 3 of its pods within a minute";
    let cases = [
        (Rule::RefusedByAgent, held("replica set payments/ledger", over), ["Held by a budget: 11 deletes in a minute, 10 are allowed", "", "decree resume payments/ledger"]),
        (Rule::RefusedByAgent, held("namespace payments", over), ["Held by a budget of the namespace: 11 deletes in a minute, 10 are allowed", "Held by a budget of the namespace: 11 deletes in a minute, 10 are allowed", "decree resume --namespace payments"]),
        (Rule::RefusedByAgent, held("the cluster", over), ["Held by a budget of the cluster: 11 deletes in a minute, 10 are allowed", "Held by a budget of the cluster: 11 deletes in a minute, 10 are allowed", "decree resume --all"]),
        (Rule::RefusedByAgent, held("replica set payments/ledger", other), ["Another controller is at work: kube-controller-manager created 3 of its pods within a minute", "", "decree resume payments/ledger"]),
        (Rule::RefusedByAgent, "another controller, kubectl, created a pod less than a minute ago".to_owned(), ["Another controller is at work: kubectl created a pod less than a minute ago", "", "kubectl -n payments describe replicaset ledger"]),
        (Rule::RefusedByAgent, "pod payments/a has ended".to_owned(), ["The agent refuses: pod payments/a has ended", "", "decree explain payments/ledger"]),
        (Rule::RefusedByAgent, String::new(), ["The agent refuses", "", "decree explain payments/ledger"]),
        (Rule::PodsDoNotLast, "10 pods ended within a minute of being created; the latest has failed; next try in 5000 ms".to_owned(), ["Pods do not last: 10 pods ended within a minute of being created; the latest has failed", "", "kubectl -n payments describe replicaset ledger"]),
        (Rule::Quarantined, "spec.selector: is empty".to_owned(), ["Quarantined: spec.selector: is empty", "", "kubectl -n payments get replicaset ledger -o yaml"]),
    ];
    for (rule, words, expected) in cases {
        let summary = set(
            [7, 4, 4, 4],
            Some(1),
            &[(Rule::Backoff, "2 failures"), (rule, &words)],
        );
        let (severity, said) = told(&summary, &known(None));
        assert_eq!(
            (severity, said.each_ref().map(String::as_str)),
            (Severity::Blocked, expected)
        );
    }
}

#[test]
fn what_has_converged_is_in_sync_and_what_is_not_enforced_is_watched() {
    let converged = set([7, 7, 7, 7], None, &[(Rule::InSync, "")]);
    let mut known = known(None);
    let in_sync = |text: &str| {
        (
            Severity::InSync,
            [text.to_owned(), String::new(), String::new()],
        )
    };
    assert_eq!(told(&converged, &known), in_sync("In sync"));
    // The condition of an attempt before that one.
    let mut after = converged.clone();
    after.failure = "exceeded quota: pods".to_owned();
    assert_eq!(told(&after, &known), in_sync("In sync"));
    let deleted = set([7, 6, 6, 6], Some(700), &[(Rule::BeingDeleted, "")]);
    assert_eq!(
        told(&deleted, &known),
        in_sync("Being deleted: its pods are left alone")
    );
    let lacks = set([6, 4, 4, 4], Some(700), &[(Rule::TooFewReplicas, "")]);
    let quarantined = set(
        [6, 4, 4, 4],
        None,
        &[(Rule::Quarantined, "spec.selector: is empty")],
    );
    for (mode, what) in [
        (v1::Mode::Shadow, "Watched only (shadow)"),
        (v1::Mode::DryRun, "Shown only (dry-run)"),
    ] {
        known.mode = mode;
        let said = |summary: &v1::ReplicaSetSummary| told(summary, &known).1[0].clone();
        assert_eq!(said(&lacks), format!("{what}: wants 6, has 4"));
        assert_eq!(
            said(&quarantined),
            format!("{what}, quarantined: spec.selector: is empty")
        );
        assert_eq!(told(&lacks, &known).0, Severity::Watched);
    }
}

#[test]
fn a_status_that_is_refused_blocks_what_has_converged() {
    let converged = set([7, 7, 7, 7], None, &[(Rule::Backoff, "3 failures")]);
    let failure = Some((
        FailureClass::Forbidden,
        "replicasets \"ledger\" is forbidden: no",
    ));
    let action = ActionKind::WriteStatus;
    let (severity, [said, ..]) = told(&converged, &known(Some(Attempt { action, failure })));
    assert_eq!(
        (severity, said.as_str()),
        (Severity::Blocked, "The API server refuses the status: no")
    );
}

#[test]
fn no_rule_state_or_mode_is_without_a_cause() {
    let rules = (0..1_000).filter_map(|number| Rule::try_from(number).ok());
    let rules: Vec<_> = rules.collect();
    let states = (0..100).filter_map(|number| ReplicaSetState::try_from(number).ok());
    let states: Vec<_> = states.collect();
    assert!(rules.len() > 25 && states.len() > 5);
    let modes = [v1::Mode::Enforce, v1::Mode::Shadow, v1::Mode::DryRun];
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
                let known = Known {
                    mode,
                    ..known(None)
                };
                let (severity, [text, ..]) = told(&summary, &known);
                assert_ne!(severity, Severity::Unspecified, "{rule:?} {state:?}");
                assert!(
                    !text.is_empty() && !text.ends_with('.'),
                    "{rule:?} {state:?}: {text}"
                );
            }
        }
    }
}

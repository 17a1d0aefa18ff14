//! Messages of agents, the API server, its plugins and webhooks, with their causes.

use decree::v1::Rule;
use server_core::FailureClass;

/// Messages of the API server, its plugins and webhooks, from Kubernetes 1.34 to 1.36: the class that the agent finds in them, sentence,
/// group and command.
pub(super) const REFUSALS: [(FailureClass, &str, [&str; 3]); 23] = [
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
            "Webhook w.example.com does not respond: dial tcp 10.0.0.1:443: connect: connection refused",
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
            "Priority class high does not exist",
            "Priority class high does not exist",
            "kubectl get priorityclasses",
        ],
    ),
    (
        FailureClass::Forbidden,
        "pods \"a\" is forbidden: pod rejected: RuntimeClass \"gvisor\" not found",
        [
            "Runtime class gvisor does not exist",
            "Runtime class gvisor does not exist",
            "kubectl get runtimeclasses",
        ],
    ),
    (
        FailureClass::Forbidden,
        "pods \"a\" is forbidden: unable to validate against any security context constraint: [provider \"anyuid\": Forbidden: not usable by user or serviceaccount, provider restricted-v2: .containers[0].runAsUser: Invalid value: 999: must be in the ranges: [1000680000, 1000689999], provider \"restricted\": Forbidden: not usable by user or serviceaccount, provider \"nonroot-v2\": Forbidden: not usable by user or serviceaccount]",
        [
            "Security context constraints refuse pods in payments: restricted-v2: .containers[0].runAsUser: Invalid value: 999: must be in the ranges: [1000680000, 1000689999]",
            "Security context constraints refuse pods in payments",
            "kubectl get securitycontextconstraints",
        ],
    ),
    (
        FailureClass::Forbidden,
        "pods \"a\" is forbidden: unable to validate against any security context constraint: []",
        [
            "Security context constraints refuse pods in payments",
            "Security context constraints refuse pods in payments",
            "kubectl get securitycontextconstraints",
        ],
    ),
    (
        FailureClass::Forbidden,
        "admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/payments/ledger-7qz9m was blocked due to the following policies \n\nrequire-requests-limits:\n  validate-resources: 'validation error: CPU and memory resource requests are required. rule validate-resources failed at path /spec/containers/0/resources/limits/'",
        [
            "A webhook refuses pods: require-requests-limits: validate-resources: 'validation error: CPU and memory resource requests are required. rule validate-resources failed at path /spec/cont…",
            "Webhook validate.kyverno.svc-fail refuses pods",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        ],
    ),
    (
        FailureClass::Unavailable,
        "Internal error occurred: failed calling webhook \"mutate.kyverno.svc-fail\": failed to call webhook: Post \"https://kyverno-svc.kyverno.svc:443/mutate/fail?timeout=10s\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
        [
            "Webhook mutate.kyverno.svc-fail does not respond: tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "Webhook mutate.kyverno.svc-fail does not respond",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        ],
    ),
    (
        FailureClass::Unavailable,
        "etcdserver: mvcc: database space exceeded",
        [
            "etcd takes no writes: database space exceeded",
            "etcd takes no writes",
            "etcdctl alarm list",
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

type Failure = Option<(FailureClass, &'static str)>;

/// Counts of pods, a rule with the detail `later`, a failure with its message, and the sentence and command of a passing cause.
pub(super) const PASSING: [([i32; 4], Rule, Failure, &str, &str); 13] = [
    (
        [10, 7, 7, 7],
        Rule::TooFewReplicas,
        None,
        "Creates 3 of 10 pods",
        "decree explain payments/ledger",
    ),
    (
        [10, 12, 12, 12],
        Rule::TooManyReplicas,
        None,
        "Deletes 2 of 12 pods",
        "decree explain payments/ledger",
    ),
    (
        [7, 7, 4, 4],
        Rule::InSync,
        None,
        "3 of 7 pods not ready",
        "kubectl -n payments describe pod ledger-7qz9m",
    ),
    (
        [1, 1, 1, 0],
        Rule::AvailabilityCheck,
        None,
        "1 of 1 pod not available yet",
        "decree explain payments/ledger",
    ),
    (
        [7, 4, 4, 4],
        Rule::PartialView,
        None,
        "The agent's list is not complete",
        "",
    ),
    (
        [7, 4, 4, 4],
        Rule::ViewOlderThanWrite,
        None,
        "The agent's list does not show the last write",
        "",
    ),
    (
        [7, 4, 4, 4],
        Rule::Throttled,
        None,
        "The API server asks to wait: later",
        "",
    ),
    (
        [7, 4, 4, 4],
        Rule::Backoff,
        Some((FailureClass::Throttled, "later.")),
        "The API server asks to wait: later",
        "",
    ),
    (
        [7, 4, 4, 4],
        Rule::Backoff,
        Some((FailureClass::Unavailable, "etcd")),
        "The API server does not respond: etcd",
        "",
    ),
    (
        [7, 4, 4, 4],
        Rule::Backoff,
        Some((FailureClass::Timeout, "")),
        "The API server does not respond",
        "",
    ),
    (
        [7, 4, 4, 4],
        Rule::Backoff,
        Some((FailureClass::Unavailable, "etcdserver: request timed out")),
        "etcd does not respond: request timed out",
        "",
    ),
    (
        [7, 4, 4, 4],
        Rule::Backoff,
        Some((
            FailureClass::Quota,
            "pods \"a\" is forbidden: status unknown for quota: compute, resources: limits.cpu",
        )),
        "A quota in payments is not computed yet: compute, resources: limits.cpu",
        "kubectl -n payments describe resourcequota",
    ),
    (
        [7, 4, 4, 4],
        Rule::Backoff,
        Some((
            FailureClass::Unavailable,
            "Internal error occurred: resource quota evaluation timed out",
        )),
        "The API server does not compute the quotas",
        "kubectl -n payments describe resourcequota",
    ),
];

/// A rule, its detail, and the sentence, group and command of a cause that needs a person.
pub(super) const BLOCKED: [(Rule, &str, [&str; 3]); 7] = [
    (
        Rule::RefusedByAgent,
        "deletes in replica set payments/ledger are held since 2026-05-01T12:00:00Z: 11 deletes in a minute, 10 are allowed; resume with: rm -rf /",
        [
            "Held by a budget: 11 deletes in a minute, 10 are allowed",
            "",
            "decree resume payments/ledger",
        ],
    ),
    (
        Rule::RefusedByAgent,
        "deletes in the cluster are held since 2026-05-01T12:00:00Z: 11 deletes in a minute, 10 are allowed; resume with: rm -rf /",
        [
            "Held by a budget of the cluster: 11 deletes in a minute, 10 are allowed",
            "Held by a budget of the cluster: 11 deletes in a minute, 10 are allowed",
            "decree resume --all",
        ],
    ),
    (
        Rule::RefusedByAgent,
        "deletes in replica set payments/ledger are held since 2026-05-01T12:00:00Z: another controller is at work: k3s created its pod ledger-x; resume with: rm -rf /",
        [
            "Another controller is at work: k3s created its pod ledger-x",
            "",
            "decree resume payments/ledger",
        ],
    ),
    (
        Rule::RefusedByAgent,
        "pod payments/a has ended",
        [
            "The agent refuses: pod payments/a has ended",
            "",
            "decree explain payments/ledger",
        ],
    ),
    (
        Rule::RefusedByAgent,
        "",
        ["The agent refuses", "", "decree explain payments/ledger"],
    ),
    (
        Rule::PodsDoNotLast,
        "21 pods ended within a minute of being created, and 20 may; the latest has failed. 5 more may be created after each 10s",
        [
            "Pods do not last: 21 pods ended within a minute of being created, and 20 may; the latest has failed",
            "",
            "kubectl -n payments describe replicaset ledger",
        ],
    ),
    (
        Rule::Quarantined,
        "spec.selector: is empty",
        [
            "Quarantined: spec.selector: is empty",
            "",
            "kubectl -n payments get replicaset ledger -o yaml",
        ],
    ),
];

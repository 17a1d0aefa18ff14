//! Causes as a table of words: from real messages of the API server, its plugins and webhooks, of Kubernetes 1.34 to 1.36.

use decree_api::v1::Rule;
use decree_core::FailureClass;

/// The class that the agent finds in a message, and the message; and the sentence, group and command of its cause.
pub(super) const REFUSALS: &str = r#"
Quota: pods "ledger-7qz9m" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=404, limited: pods=300
    Quota exceeded in payments: 404 of 300 pods
    Quota exceeded in payments: at most 300 pods
    kubectl -n payments describe resourcequota
Quota: pods "a" is forbidden: exceeded quota: all, requested: count/pods=1, used: count/pods=14, limited: count/pods=14
    Quota exceeded in payments: 14 of 14 pods
    Quota exceeded in payments: at most 14 pods
    kubectl -n payments describe resourcequota
Quota: pods "a" is forbidden: exceeded quota: compute, requested: requests.cpu=200m,requests.memory=1Gi, used: requests.cpu=1900m,requests.memory=8Gi, limited: requests.cpu=2,requests.memory=8Gi
    Quota exceeded in payments: requests.cpu 1900m of 2, 200m more needed
    Quota exceeded in payments: requests.cpu at most 2
    kubectl -n payments describe resourcequota
Quota: exceeded quota: pods
    Quota exceeded in payments: pods
    Quota exceeded in payments
    kubectl -n payments describe resourcequota
Quota: exceeded quota: p, requested: pods=1, used: pods=$(reboot), limited: pods=10
    Quota exceeded in payments: p, requested: pods=1, used: pods=$(reboot), limited: pods=10
    Quota exceeded in payments
    kubectl -n payments describe resourcequota
Quota: pods "a" is forbidden: failed quota: compute: must specify limits.cpu for: main; limits.memory for: main
    Quota in payments refuses pods: must specify limits.cpu for: main; limits.memory for: main
    Quota in payments refuses pods
    kubectl -n payments describe resourcequota
Quota: pods "a" is forbidden: maximum cpu usage per Container is 500m, but limit is 1
    Limit range in payments refuses pods: maximum cpu usage per Container is 500m, but limit is 1
    Limit range in payments refuses pods
    kubectl -n payments describe limitrange
Forbidden: admission webhook "validate.policy.example.com" denied the request: the image\n must come from \e[31mregistry.example.com.
    A webhook refuses pods: the image must come from [31mregistry.example.com
    Webhook validate.policy.example.com refuses pods
    kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
Invalid: admission webhook "w.example.com" denied the request without explanation
    A webhook refuses pods: without explanation
    Webhook w.example.com refuses pods
    kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
Unavailable: Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.policy.svc:443/v?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused
    Webhook w.example.com does not respond: dial tcp 10.0.0.1:443: connect: connection refused
    Webhook w.example.com does not respond
    kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
Forbidden: pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)
    Pod Security restricted:latest refuses pods: allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)
    Pod Security restricted:latest refuses pods in payments
    kubectl get namespace payments --show-labels
Invalid: pods "a" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'all' denied request: failed expression: !object.spec.containers.exists(c, c.image.endsWith(':latest'))
    Admission policy no-latest refuses pods: failed expression: !object.spec.containers.exists(c, c.image.endsWith(':latest'))
    Admission policy no-latest refuses pods
    kubectl get validatingadmissionpolicies
NamespaceTerminating: pods "a" is forbidden: unable to create new content in namespace payments because it is being terminated
    Namespace payments is being deleted
    Namespace payments is being deleted
    kubectl get namespace payments -o yaml
Forbidden: pods "a" is forbidden: error looking up service account payments/robot: serviceaccount "robot" not found
    Service account payments/robot does not exist
    Service account payments/robot does not exist
    kubectl -n payments get serviceaccounts
Forbidden: pods is forbidden: User "system:serviceaccount:decree-system:decree-agent" cannot create resource "pods" in API group "" in the namespace "payments"
    The agent may not create pods: system:serviceaccount:decree-system:decree-agent has no permission
    The agent may not create pods
    decree check
Forbidden: pods "a" is forbidden: no PriorityClass with name high was found
    Priority class high does not exist
    Priority class high does not exist
    kubectl get priorityclasses
Forbidden: pods "a" is forbidden: pod rejected: RuntimeClass "gvisor" not found
    Runtime class gvisor does not exist
    Runtime class gvisor does not exist
    kubectl get runtimeclasses
Forbidden: pods "a" is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount, provider restricted-v2: .containers[0].runAsUser: Invalid value: 999: must be in the ranges: [1000680000, 1000689999], provider "restricted": Forbidden: not usable by user or serviceaccount, provider "nonroot-v2": Forbidden: not usable by user or serviceaccount]
    Security context constraints refuse pods in payments: restricted-v2: .containers[0].runAsUser: Invalid value: 999: must be in the ranges: [1000680000, 1000689999]
    Security context constraints refuse pods in payments
    kubectl get securitycontextconstraints
Forbidden: pods "a" is forbidden: unable to validate against any security context constraint: []
    Security context constraints refuse pods in payments
    Security context constraints refuse pods in payments
    kubectl get securitycontextconstraints
Forbidden: admission webhook "validate.kyverno.svc-fail" denied the request: \n\nresource Pod/payments/ledger-7qz9m was blocked due to the following policies \n\nrequire-requests-limits:\n  validate-resources: 'validation error: CPU and memory resource requests are required. rule validate-resources failed at path /spec/containers/0/resources/limits/'
    A webhook refuses pods: require-requests-limits: validate-resources: 'validation error: CPU and memory resource requests are required. rule validate-resources failed at path /spec/cont…
    Webhook validate.kyverno.svc-fail refuses pods
    kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
Unavailable: Internal error occurred: failed calling webhook "mutate.kyverno.svc-fail": failed to call webhook: Post "https://kyverno-svc.kyverno.svc:443/mutate/fail?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority
    Webhook mutate.kyverno.svc-fail does not respond: tls: failed to verify certificate: x509: certificate signed by unknown authority
    Webhook mutate.kyverno.svc-fail does not respond
    kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
Unavailable: etcdserver: mvcc: database space exceeded
    etcd takes no writes: database space exceeded
    etcd takes no writes
    etcdctl alarm list
Invalid: Pod "a" is invalid: spec.containers[0].image: Required value
    The API server refuses pods: spec.containers[0].image: Required value
    -
    kubectl -n payments describe replicaset ledger
"#;

/// Counts of pods, a rule with the detail `later`, and a failure with its message; and the sentence and command of a passing cause.
pub(super) const PASSING: &str = r#"
10 7 7 7 TooFewReplicas
    Creates 3 of 10 pods
    decree explain payments/ledger
10 12 12 12 TooManyReplicas
    Deletes 2 of 12 pods
    decree explain payments/ledger
7 7 4 4 InSync
    3 of 7 pods not ready
    kubectl -n payments describe pod ledger-7qz9m
1 2 1 1 Surge
    1 of 2 pods not ready
    kubectl -n payments describe pod ledger-7qz9m
1 1 1 0 AvailabilityCheck
    1 of 1 pod not available yet
    decree explain payments/ledger
7 4 4 4 PartialView
    The agent's list is not complete
    -
7 4 4 4 ViewOlderThanWrite
    The agent's list does not show the last write
    -
7 4 4 4 Throttled
    The API server asks to wait: later
    -
7 4 4 4 Backoff | Throttled: later.
    The API server asks to wait: later
    -
7 4 4 4 Backoff | Unavailable: etcd
    The API server does not respond: etcd
    -
7 4 4 4 Backoff | Timeout:
    The API server does not respond
    -
7 4 4 4 Backoff | Unavailable: etcdserver: request timed out
    etcd does not respond: request timed out
    -
7 4 4 4 Backoff | Quota: pods "a" is forbidden: status unknown for quota: compute, resources: limits.cpu
    A quota in payments is not computed yet: compute, resources: limits.cpu
    kubectl -n payments describe resourcequota
7 4 4 4 Backoff | Unavailable: Internal error occurred: resource quota evaluation timed out
    The API server does not compute the quotas
    kubectl -n payments describe resourcequota
"#;

/// A rule and its detail; and the sentence, group and command of a cause that needs a person.
pub(super) const BLOCKED: &str = "
RefusedByAgent: deletes in replica set payments/ledger are held since 2026-05-01T12:00:00Z: 11 deletes in a minute, 10 are allowed; resume with: rm -rf /
    Held by a budget: 11 deletes in a minute, 10 are allowed
    -
    decree resume payments/ledger
RefusedByAgent: deletes in the cluster are held since 2026-05-01T12:00:00Z: 11 deletes in a minute, 10 are allowed; resume with: rm -rf /
    Held by a budget of the cluster: 11 deletes in a minute, 10 are allowed
    Held by a budget of the cluster: 11 deletes in a minute, 10 are allowed
    decree resume --all
RefusedByAgent: deletes in replica set payments/ledger are held since 2026-05-01T12:00:00Z: another controller is at work: k3s created its pod ledger-x; resume with: rm -rf /
    Another controller is at work: k3s created its pod ledger-x
    -
    decree resume payments/ledger
RefusedByAgent: pod payments/a has ended
    The agent refuses: pod payments/a has ended
    -
    decree explain payments/ledger
RefusedByAgent:
    The agent refuses
    -
    decree explain payments/ledger
PodsDoNotLast: 21 pods ended within a minute of being created, and 20 may; the latest has failed. 5 more may be created after each 10s
    Pods do not last: 21 pods ended within a minute of being created, and 20 may; the latest has failed
    -
    kubectl -n payments describe replicaset ledger
Quarantined: spec.selector: is empty
    Quarantined: spec.selector: is empty
    -
    kubectl -n payments get replicaset ledger -o yaml
";

/// The number of changes and the managers of desired pods that go up and down between 2 and 4, and the owner; and the sentence and command.
pub(super) const FLAPPING: &str = "
12 argocd-controller horizontal-pod-autoscaler |
    Desired changed 12 times in a minute, between 2 and 4, by argocd-controller and horizontal-pod-autoscaler
    kubectl -n payments get replicaset ledger --show-managed-fields -o yaml
6 |
    Desired changed 6 times in a minute, between 2 and 4
    kubectl -n payments get replicaset ledger --show-managed-fields -o yaml
64 a\u{1b}[2J b\u{202e} c d |
    Desired changed 64 times in a minute, between 2 and 4, by a [2J, b, c and others
    kubectl -n payments get replicaset ledger --show-managed-fields -o yaml
6 kube-controller-manager | Deployment web
    Desired changed 6 times in a minute, between 2 and 4, by kube-controller-manager for Deployment web
    kubectl -n payments get deployment web --show-managed-fields -o yaml
6 | Deployment web
    Desired changed 6 times in a minute, between 2 and 4
    kubectl -n payments get deployment web --show-managed-fields -o yaml
6 kube-controller-manager kubectl-scale | Deployment web
    Desired changed 6 times in a minute, between 2 and 4, by kube-controller-manager for Deployment web and kubectl-scale
    kubectl -n payments get replicaset ledger --show-managed-fields -o yaml
6 kube-controller-manager | Deployment web;reboot
    Desired changed 6 times in a minute, between 2 and 4, by kube-controller-manager
    kubectl -n payments get replicaset ledger --show-managed-fields -o yaml
6 rollouts-controller | Rollout web
    Desired changed 6 times in a minute, between 2 and 4, by rollouts-controller
    kubectl -n payments get replicaset ledger --show-managed-fields -o yaml
";

/// The rows of a table, of so many lines each. `-` stands for nothing, `\n` for a line feed, and `\e` for an escape.
pub(super) fn rows<const LINES: usize>(table: &str) -> Vec<[String; LINES]> {
    let lines = table.trim().lines().map(|line| match line.trim() {
        "-" => String::new(),
        line => line.replace(r"\n", "\n").replace(r"\e", "\u{1b}"),
    });
    let lines: Vec<_> = lines.collect();
    let (rows, rest) = lines.as_chunks();
    assert!(rest.is_empty(), "{rest:?} is no row");
    rows.to_vec()
}

/// Reads `CLASS: MESSAGE`.
pub(super) fn failure(text: &str) -> (FailureClass, &str) {
    use FailureClass::{
        Forbidden, Invalid, NamespaceTerminating, Quota, Throttled, Timeout, Unavailable,
    };
    let (name, message) = text.split_once(':').expect(text);
    let class = match name {
        "Forbidden" => Forbidden,
        "Invalid" => Invalid,
        "NamespaceTerminating" => NamespaceTerminating,
        "Quota" => Quota,
        "Throttled" => Throttled,
        "Timeout" => Timeout,
        "Unavailable" => Unavailable,
        _ => panic!("{name} is no class"),
    };
    (class, message.trim_start())
}

pub(super) fn rule(name: &str) -> Rule {
    let mut rules = (0..1_000).filter_map(|number| Rule::try_from(number).ok());
    rules.find(|it| format!("{it:?}") == name).expect(name)
}

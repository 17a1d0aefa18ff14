//! The creators and deleters of the pods of a namespace, from the audit log.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The two controllers, as the API server knows them.
const DECREE: &str = "system:serviceaccount:decree-system:decree-agent";
const STATIC: &str = "decree-agent";
const BUILT_IN: &str = "system:serviceaccount:kube-system:replicaset-controller";

/// The numbers of pods that each controller created and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) made: usize,
    pub(crate) deleted: usize,
    pub(crate) made_by_built_in: usize,
    pub(crate) deleted_by_built_in: usize,
}

impl Counts {
    /// Reads the counts of a namespace in which these pods exist now. A repeated deletion counts once: both are of the same pod. A request
    /// whose client is killed is logged as an error of the server, with or without an effect, so the pod decides whether it counts.
    pub(crate) fn of(log: &[Value], namespace: &str, existing: &[Value]) -> Self {
        let mut counts = Self::default();
        let named = |name: &str| existing.iter().find(|pod| pod["metadata"]["name"] == name);
        let lasts = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
        let requests = || log.iter().filter_map(|line| Request::read(line, namespace));
        let deletions = |name| requests().filter(move |it| !it.is_create && it.name == name);
        let is_deleted = |name| deletions(name).any(|it| it.code < 300);
        let mut seen = BTreeSet::new();
        for request in requests() {
            let Request {
                is_create,
                code,
                user,
                name,
            } = request;
            let took_effect = match (is_create, code) {
                (_, 200..300) => true,
                (true, 500..) => named(name).is_some() || is_deleted(name),
                (false, 500..) => !named(name).is_some_and(lasts) && !is_deleted(name),
                _ => false,
            };
            if !took_effect {
                continue;
            }
            let count = match (user, is_create) {
                (DECREE | STATIC, true) => &mut counts.made,
                (DECREE | STATIC, false) => &mut counts.deleted,
                (BUILT_IN, true) => &mut counts.made_by_built_in,
                (BUILT_IN, false) => &mut counts.deleted_by_built_in,
                _ => continue,
            };
            // For pods of the built-in controller, the API server makes the name, which the log of a creation lacks.
            if name.is_empty() || seen.insert((is_create, name)) {
                *count += 1;
            }
        }
        counts
    }

    /// Whether no count exceeds `wanted`.
    pub(crate) fn is_within(&self, wanted: &Self) -> bool {
        self.made <= wanted.made
            && self.deleted <= wanted.deleted
            && self.made_by_built_in <= wanted.made_by_built_in
            && self.deleted_by_built_in <= wanted.deleted_by_built_in
    }
}

/// A logged creation or deletion of a pod.
struct Request<'a> {
    is_create: bool,
    code: u64,
    user: &'a str,
    name: &'a str,
}

impl<'a> Request<'a> {
    fn read(line: &'a Value, namespace: &str) -> Option<Self> {
        let object = &line["objectRef"];
        let is_pod = object["resource"] == "pods" && object["subresource"].is_null();
        (is_pod && object["namespace"] == namespace).then(|| Self {
            is_create: line["verb"] == "create",
            code: line["responseStatus"]["code"].as_u64().unwrap_or_default(),
            user: line["user"]["username"].as_str().unwrap_or_default(),
            name: object["name"].as_str().unwrap_or_default(),
        })
    }
}

#[test]
fn requests_of_a_killed_client_count_if_they_took_effect() {
    let request = |verb: &str, name: &str, code: u64| {
        json!({
            "verb": verb, "user": {"username": DECREE}, "responseStatus": {"code": code},
            "objectRef": {"resource": "pods", "namespace": "shop", "name": name},
        })
    };
    let log = [
        request("create", "answered", 201),
        request("create", "made", 504),
        request("create", "never", 504),
        request("create", "refused", 403),
        request("create", "gone", 201),
        request("delete", "gone", 500),
        request("create", "removed", 504),
        request("delete", "removed", 504),
        request("delete", "removed", 200),
        request("create", "kept", 201),
        request("delete", "kept", 504),
        request("create", "terminating", 504),
        request("delete", "terminating", 504),
    ];
    let mut exist =
        ["answered", "made", "kept", "terminating"].map(|name| json!({"metadata": {"name": name}}));
    exist[3]["metadata"]["deletionTimestamp"] = "2026-11-30T11:02:41Z".into();
    let counts = Counts::of(&log, "shop", &exist);
    assert_eq!((counts.made, counts.deleted), (6, 3), "{counts:?}");
}

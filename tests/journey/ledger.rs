//! The creators and deleters of the pods of a namespace, from the audit log.

use tests::real::AuditLog;

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
    /// Reads the counts of a namespace from the start. A repeated deletion counts once: both are of the same pod.
    pub(crate) fn of(audit: &AuditLog, namespace: &str) -> Self {
        let mut counts = Self::default();
        let mut deleted = Vec::new();
        for line in audit.lines(0) {
            let object = &line["objectRef"];
            let code = line["responseStatus"]["code"].as_u64().unwrap_or_default();
            let is_pod = object["resource"] == "pods" && object["subresource"].is_null();
            if !is_pod || object["namespace"] != namespace || !(200..300).contains(&code) {
                continue;
            }
            let user = line["user"]["username"].as_str().unwrap_or_default();
            let is_decree = [DECREE, STATIC].contains(&user);
            if !is_decree && user != BUILT_IN {
                continue;
            }
            match line["verb"].as_str() {
                Some("create") if is_decree => counts.made += 1,
                Some("create") => counts.made_by_built_in += 1,
                _ => {
                    let name = object["name"].clone();
                    if deleted.contains(&name) {
                        continue;
                    }
                    deleted.push(name);
                    if is_decree {
                        counts.deleted += 1
                    } else {
                        counts.deleted_by_built_in += 1
                    }
                }
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

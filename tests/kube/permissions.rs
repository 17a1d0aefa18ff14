//! The shipped permissions are exactly those that the agent needs.

use std::{collections::BTreeSet, time::Instant};

use serde_json::{Value, json};
use tests::real::{Api, ApiServer, DecisionServer, Namespace, PATIENCE};

use crate::{
    audit::{self, Audit},
    rendered::{self, Rendered, SYSTEM},
    workload::{Workload, user},
};

/// Admission refuses an owner reference that blocks the owner's deletion, without the permission to block it.
const HOLDERS_ARE_CHECKED: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";

/// One verb of one rule of a role.
#[derive(Clone, Debug)]
struct Permission {
    role: Value,
    rule: usize,
    verb: String,
}

#[tokio::test]
async fn each_shipped_permission_is_needed_and_no_other() {
    let rendered = tests::or_skip!(Rendered::of("base"));
    let audit = Audit::of(&user());
    let [policy, log] = audit.flags();
    let flags = [HOLDERS_ARE_CHECKED, &policy, &log];
    let cluster = tests::or_skip!(ApiServer::start_with(&flags).await);
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    let namespace = Namespace::create(admin.clone(), "permissions").await;
    let server = DecisionServer::start();
    let permissions = permissions(&rendered);
    for permission in &permissions {
        permission.becomes(true, &admin).await;
    }

    let mut workload = Workload::begin(&cluster, &server, &namespace, &audit).await;
    assert_eq!(workload.run().await, Ok(()));
    let used = workload.asked();
    workload.end().await;
    // Admission requires this permission, not a request.
    let implied = BTreeSet::from(["update replicasets/finalizers.apps".to_owned()]);
    let granted: BTreeSet<_> = permissions.iter().map(Permission::name).collect();
    assert_eq!(used, &granted - &implied);

    for permission in &permissions {
        permission.take(&admin).await;
        let mut workload = Workload::begin(&cluster, &server, &namespace, &audit).await;
        let refused = workload.run().await.expect_err(&permission.name());
        assert_eq!(refused, BTreeSet::from([permission.name()]));
        workload.end().await;
        permission.give_back(&admin).await;
    }
}

fn permissions(rendered: &Rendered) -> Vec<Permission> {
    let mut permissions = Vec::new();
    for role in ["ClusterRole", "Role"].map(|kind| rendered.one(kind, "decree-agent")) {
        let rules = role["rules"].as_array().expect("it has rules");
        for (rule, verbs) in rules.iter().map(|it| &it["verbs"]).enumerate() {
            for verb in verbs.as_array().expect("a rule has verbs") {
                permissions.push(Permission {
                    role: role.clone(),
                    rule,
                    verb: verb.as_str().expect("it is text").to_owned(),
                });
            }
        }
    }
    permissions
}

// === impl Permission ===

impl Permission {
    fn name(&self) -> String {
        let [group, resource] = self.target();
        audit::named(&self.verb, resource, group)
    }

    /// Removes the permission, and waits until the removal is effective.
    async fn take(&self, admin: &Api) {
        let mut role = self.role.clone();
        let rules = role["rules"].as_array_mut().expect("it has rules");
        let verbs = rules[self.rule]["verbs"].as_array_mut();
        let verbs = verbs.expect("a rule has verbs");
        verbs.retain(|verb| *verb != self.verb.as_str());
        if verbs.is_empty() {
            rules.remove(self.rule);
        }
        self.put(admin, &role, false).await;
    }

    async fn give_back(&self, admin: &Api) {
        self.put(admin, &self.role, true).await;
    }

    async fn put(&self, admin: &Api, role: &Value, allowed: bool) {
        let applied = rendered::apply(admin, role).await;
        applied.expect("the role is valid");
        self.becomes(allowed, admin).await;
    }

    /// Waits until the API server has learned that the permission is granted, or not.
    async fn becomes(&self, allowed: bool, admin: &Api) {
        let until = Instant::now() + PATIENCE;
        while self.is_allowed(admin).await != allowed {
            let late = Instant::now() >= until;
            assert!(!late, "{}: never {allowed}", self.name());
        }
    }

    async fn is_allowed(&self, admin: &Api) -> bool {
        let [group, resource] = self.target();
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user(), "resourceAttributes": {
                "namespace": SYSTEM, "verb": self.verb, "group": group, "resource": resource,
                "subresource": part, "name": self.rule()["resourceNames"][0].as_str().unwrap_or_default(),
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let review = admin.create(path, &review).await.expect("it is valid");
        review["status"]["allowed"] == true
    }

    fn rule(&self) -> &Value {
        &self.role["rules"][self.rule]
    }

    /// The group and the resource.
    fn target(&self) -> [&str; 2] {
        ["apiGroups", "resources"].map(|field| {
            let [one] = &self.rule()[field].as_array().expect("it is a list")[..] else {
                panic!("{} has other than one of {field}", self.rule())
            };
            one.as_str().expect("it is text")
        })
    }
}

//! The shipped permissions are exactly those that the agent needs.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use serde_json::{Value, json};
use tests::real::{Api, ApiServer, Namespace, PATIENCE};

use crate::{
    audit::{self, Audit},
    rendered::{self, Rendered, SYSTEM},
    workload::{ACCOUNT, Workload, user, user_of},
};

/// Admission refuses an owner reference that blocks the owner's deletion, without the permission to block it.
const HOLDERS_ARE_CHECKED: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
/// The permission that admission requires, and no request.
const IMPLIED: &str = "update replicasets/finalizers.apps";
/// The namespace of an agent without that permission.
const LACKING: &str = "lacking";

/// One verb of one rule of a role.
#[derive(Clone, Debug)]
struct Permission {
    role: Value,
    rule: usize,
    verb: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn each_shipped_permission_is_needed_and_no_other() {
    let rendered = tests::or_skip!(Rendered::of("base"));
    let permissions = permissions(&rendered);
    let audit = Arc::new(Audit::of(&[user_of(LACKING), user()]));
    let [policy, log] = audit.flags();
    let flags = [HOLDERS_ARE_CHECKED, &policy, &log];
    let cluster = tests::or_skip!(ApiServer::start_with(&flags).await);
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    for permission in &permissions {
        permission.is_granted(&admin, SYSTEM).await;
    }
    let namespace = Namespace::create(admin.clone(), "permissions").await;
    let mut workload = Workload::begin(&cluster, &namespace, SYSTEM, &[], &audit).await;
    assert_eq!(workload.run().await, Ok(()));
    let granted: BTreeSet<_> = permissions.iter().map(Permission::name).collect();
    let implied = BTreeSet::from([IMPLIED.to_owned()]);
    assert_eq!(workload.asked(), &granted - &implied);
    drop(workload);

    let namespace = Namespace::create(admin.clone(), LACKING).await;
    grant_all_but(&permissions, IMPLIED, &admin, LACKING).await;
    let only = ["--namespace", LACKING];
    let mut workload = Workload::begin(&cluster, &namespace, LACKING, &only, &audit).await;
    assert_eq!(workload.run().await, Err(implied));
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

/// Makes the service account of an agent in a namespace, with copies of the shipped roles that lack one permission, and waits until
/// the API server has learned of them.
async fn grant_all_but(permissions: &[Permission], lacking: &str, admin: &Api, system: &str) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": system},
    });
    let applied = rendered::apply(admin, &account).await;
    applied.expect("it is valid");
    let missing = permissions.iter().find(|it| it.name() == lacking);
    let missing = missing.expect("it is granted");
    for kind in ["ClusterRole", "Role"] {
        let mut of_kind = permissions.iter().filter(|it| it.role["kind"] == kind);
        let mut role = of_kind.next().expect("there is one").role.clone();
        role["metadata"] = json!({"name": system, "namespace": system});
        if kind == "ClusterRole" {
            role["metadata"] = json!({"name": system});
        }
        if missing.role["kind"] == kind {
            let rules = role["rules"].as_array_mut().expect("it has rules");
            rules.remove(missing.rule);
        }
        rendered::grant(admin, &role, system, ACCOUNT).await;
    }
    for permission in permissions.iter().filter(|it| it.name() != lacking) {
        permission.is_granted(admin, system).await;
    }
}

/// Waits until the API server has learned that a user may do this: it reads new roles a moment after it has stored them.
pub(crate) async fn is_allowed(admin: &Api, user: &str, attributes: &Value) {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let until = Instant::now() + PATIENCE;
    loop {
        let reviewed = admin.create(path, &review).await.expect("it is valid");
        if reviewed["status"]["allowed"] == true {
            return;
        }
        assert!(Instant::now() < until, "never granted: {reviewed}");
    }
}

impl Permission {
    fn name(&self) -> String {
        let [group, resource] = self.target();
        audit::named(&self.verb, resource, group)
    }

    /// Waits until the API server has learned that the agent of a namespace has the permission.
    async fn is_granted(&self, admin: &Api, system: &str) {
        let [group, resource] = self.target();
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let rule = &self.role["rules"][self.rule];
        let attributes = json!({
            "namespace": system, "verb": self.verb, "group": group, "resource": resource,
            "subresource": part, "name": rule["resourceNames"][0].as_str().unwrap_or_default(),
        });
        is_allowed(admin, &user_of(system), &attributes).await;
    }

    /// The group and the resource.
    fn target(&self) -> [&str; 2] {
        ["apiGroups", "resources"].map(|field| {
            let rule = &self.role["rules"][self.rule];
            let [one] = &rule[field].as_array().expect("it is a list")[..] else {
                panic!("{rule} has other than one of {field}")
            };
            one.as_str().expect("it is text")
        })
    }
}

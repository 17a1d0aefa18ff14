//! The shipped permissions are exactly those that the agent needs.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use serde_json::{Value, json};
use tests::real::{Api, ApiServer, Namespace, PATIENCE};
use tokio::task::JoinSet;

use crate::{
    audit::{self, Audit},
    rendered::{self, Rendered, SYSTEM},
    workload::{ACCOUNT, Workload, user, user_of},
};

/// Admission refuses an owner reference that blocks the owner's deletion, without the permission to block it.
const HOLDERS_ARE_CHECKED: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
/// The number of agents at a time that each lack a permission.
const AT_ONCE: usize = 5;

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
    let permissions = Arc::new(permissions(&rendered));
    let lacking = |number: usize| format!("lacking-{number}");
    let users = (0..permissions.len()).map(|number| user_of(&lacking(number)));
    let users: Vec<_> = users.chain([user()]).collect();
    let audit = Arc::new(Audit::of(&users));
    let [policy, log] = audit.flags();
    let flags = [HOLDERS_ARE_CHECKED, &policy, &log];
    let cluster = Arc::new(tests::or_skip!(ApiServer::start_with(&flags).await));
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    for permission in permissions.iter() {
        permission.is_granted(&admin, SYSTEM).await;
    }
    let namespace = Namespace::create(admin.clone(), "permissions").await;
    let mut workload = Workload::begin(&cluster, &namespace, SYSTEM, &[], &audit).await;
    assert_eq!(workload.run().await, Ok(()));
    // Admission requires this permission, not a request.
    let implied = BTreeSet::from(["update replicasets/finalizers.apps".to_owned()]);
    let granted: BTreeSet<_> = permissions.iter().map(Permission::name).collect();
    assert_eq!(workload.asked(), &granted - &implied);
    drop(workload);

    let mut agents = JoinSet::new();
    for number in 0..permissions.len() {
        if agents.len() == AT_ONCE {
            agents
                .join_next()
                .await
                .expect("there are some")
                .expect("it ends");
        }
        let (cluster, audit) = (Arc::clone(&cluster), Arc::clone(&audit));
        let permissions = Arc::clone(&permissions);
        agents.spawn(async move {
            let name = lacking(number);
            let admin = cluster.admin().await;
            let namespace = Namespace::create(admin.clone(), &name).await;
            grant_all_but(&permissions, number, &admin, &name).await;
            let only = ["--namespace", &name];
            let mut workload = Workload::begin(&cluster, &namespace, &name, &only, &audit).await;
            let missing = permissions[number].name();
            let refused = workload.run().await.expect_err(&missing);
            assert_eq!(refused, BTreeSet::from([missing]));
        });
    }
    while let Some(agent) = agents.join_next().await {
        agent.expect("it lacks a permission");
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

/// Makes the service account of an agent in a namespace, with copies of the shipped roles that lack one permission, and waits until
/// the API server has learned of them.
async fn grant_all_but(permissions: &[Permission], lacking: usize, admin: &Api, system: &str) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": system},
    });
    let applied = rendered::apply(admin, &account).await;
    applied.expect("it is valid");
    for kind in ["ClusterRole", "Role"] {
        let mut of_kind = permissions.iter().filter(|it| it.role["kind"] == kind);
        let mut role = of_kind.next().expect("there is one").role.clone();
        role["metadata"] = json!({"name": system, "namespace": system});
        if kind == "ClusterRole" {
            role["metadata"] = json!({"name": system});
        }
        let missing = &permissions[lacking];
        if missing.role["kind"] == kind {
            let rules = role["rules"].as_array_mut().expect("it has rules");
            let verbs = rules[missing.rule]["verbs"].as_array_mut();
            let verbs = verbs.expect("a rule has verbs");
            verbs.retain(|verb| *verb != missing.verb.as_str());
            if verbs.is_empty() {
                rules.remove(missing.rule);
            }
        }
        rendered::grant(admin, &role, system, ACCOUNT).await;
    }
    for (number, permission) in permissions.iter().enumerate() {
        if number != lacking {
            permission.is_granted(admin, system).await;
        }
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

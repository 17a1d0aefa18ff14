//! The API server itself, without Decree: the basis of the other tests.

use serde_json::json;
use tests::real::{Api, ApiServer, Namespace, User};

use crate::objects;

#[tokio::test]
async fn api_server_comes_up_with_rbac() {
    let server = tests::or_skip!(ApiServer::shared().await);
    let admin = server.admin().await;
    let version = admin.get("/version").await.expect("all may read it");
    assert_eq!(version["gitVersion"], "v1.36.3", "{version}");

    let namespace = Namespace::create(admin, "comes-up-with-rbac").await;
    let nobody = Api::of(&server.kubeconfig(User::Nobody)).await;
    let refusal = nobody.get(&namespace.pod("")).await;
    let refusal = refusal.expect_err("nothing is granted to nobody");
    assert_eq!((refusal.code, refusal.reason.as_str()), (403, "Forbidden"));

    let account = server.service_account(namespace.name(), "default").await;
    let account = Api::of(&account).await;
    let refusal = account.get(&namespace.pod("")).await;
    let refusal = refusal.expect_err("nothing is granted to this service account");
    let user = "system:serviceaccount:comes-up-with-rbac:default";
    assert!(refusal.message.contains(user), "{refusal:?}");
}

#[tokio::test]
async fn a_replica_set_is_stored_as_written() {
    let server = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(server.admin().await, "stored-as-written").await;
    let mut written = objects::replica_set("web", 3);
    written["spec"]["template"]["spec"]["hostAliases"] =
        json!([{"ip": "192.0.2.1", "hostnames": ["one", "two"]}]);
    let sets = namespace.replica_set("");
    let created = namespace.api().create(&sets, &written).await;
    let created = created.expect("it is valid");
    let read = namespace.api().get(&namespace.replica_set("web")).await;
    let read = read.expect("it was created");
    assert_eq!(read, created);
    assert_eq!(read["metadata"]["generation"], 1);
    assert_eq!(read["spec"]["selector"], written["spec"]["selector"]);
    assert_eq!(read["status"], json!({"replicas": 0}));
    let template = &read["spec"]["template"];
    assert_eq!(
        template["spec"]["hostAliases"],
        written["spec"]["template"]["spec"]["hostAliases"]
    );
}

#[tokio::test]
async fn two_test_namespaces_do_not_meet() {
    let server = tests::or_skip!(ApiServer::shared().await);
    let admin = server.admin().await;
    let one = Namespace::create(admin.clone(), "do-not-meet-1").await;
    let other = Namespace::create(admin.clone(), "do-not-meet-2").await;
    let pod = objects::pod("alone");
    let created = admin.create(&one.pod(""), &pod).await;
    created.expect("its namespace has a service account");
    assert_eq!(one.pods().await.expect("they can be listed").len(), 1);
    assert_eq!(other.pods().await.expect("they can be listed").len(), 0);
}

#[tokio::test]
async fn what_is_stored_outlives_the_programs() {
    let mut server = tests::or_skip!(ApiServer::start().await);
    let admin = server.admin().await;
    let namespace = Namespace::create(admin, "outlives").await;
    let created = namespace
        .api()
        .create(&namespace.replica_set(""), &objects::replica_set("web", 3))
        .await;
    let created = created.expect("it is valid");
    server.restart().await;
    server.restart_etcd().await;
    let path = namespace.replica_set("web");
    let uid = &created["metadata"]["uid"];
    namespace
        .api()
        .wait_for("still there", &path, |read| {
            (read["metadata"]["uid"] == *uid).then_some(())
        })
        .await;
}

//! How far a list is followed.

use agent_core::{
    cluster::Cluster as _,
    watch::{Items, Part},
};

use super::*;
use crate::{
    cluster::{KubeCluster, KubeClusterConfig},
    connect::CredentialSource,
    resource::Resource,
};

fn pages() -> Pages {
    let credentials = kube::Config::new("http://localhost".parse().expect("it is a URL"));
    let config = KubeClusterConfig {
        source: CredentialSource::default(),
        namespace: None,
        resource: Resource::default(),
        calls_max: 1,
    };
    let cluster = KubeCluster::with_credentials(&credentials, &config);
    cluster.expect("it connects later").list(Kind::Pod)
}

fn page(next: usize) -> Page {
    Page {
        list: List {
            part: Part {
                begins: false,
                ends: false,
            },
            items: Items::ReplicaSets(Vec::new()),
            invalid: Vec::new(),
            resource_version: "7".into(),
        },
        next: Some(next.to_string()),
    }
}

#[test]
fn list_that_goes_on_for_ever_is_an_error() {
    let mut pages = pages();
    let read = (0..2 * PAGES_MAX).take_while(|at| pages.take(page(*at)).is_ok());
    assert_eq!(read.count(), PAGES_MAX - 1);
    let error = pages.take(page(0)).expect_err("it was met before");
    assert_eq!(error.code, None, "it is asked for anew after a while");
}

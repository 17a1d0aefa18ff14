//! A pod has all that its template says.

use serde_json::json;
use tests::real::Attended;

use crate::{acts, objects};

/// A field of pods that is newer than the typed crate in the agent's build.
const YOUNG: &str = "hostnameOverride";

#[tokio::test]
async fn all_that_a_template_says_reaches_the_pod_and_nothing_else() {
    let namespace = tests::or_skip!(Attended::namespace("whole-template").await);
    let mut set = objects::replica_set("web", 1);
    let template = &mut set["spec"]["template"];
    template["metadata"]["annotations"] = json!({"example.com/note": "with \"quotes\" and \u{e9}"});
    template["metadata"]["finalizers"] = json!(["example.com/held"]);
    template["spec"]["hostAliases"] = json!([{"ip": "192.0.2.1", "hostnames": ["one", "two"]}]);
    template["spec"][YOUNG] = "pet.example.com".into();
    template["spec"]["terminationGracePeriodSeconds"] = 0.into();
    template["spec"]["volumes"] = json!([{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}]);
    let stored = acts::create_set(&namespace, &set).await;
    let kept = &stored["spec"]["template"]["spec"][YOUNG];
    assert_eq!(*kept, "pet.example.com", "the API server knows it");
    let pods = acts::pods_become(&namespace, 1).await;
    let (template, pod) = (&stored["spec"]["template"], &pods[0]);
    for field in ["labels", "annotations", "finalizers"] {
        assert_eq!(pod["metadata"][field], template["metadata"][field]);
    }
    for (field, value) in template["spec"].as_object().expect("it is an object") {
        let has = &pod["spec"][field];
        // Admission adds the volume of the service account's token.
        let same = match has.as_array().zip(value.as_array()) {
            Some((has, value)) if field == "volumes" => has.starts_with(value),
            Some(_) | None => has == value || field == "containers",
        };
        assert!(same, "{field} is {has}, not {value}");
    }
    let managers = pod["metadata"]["managedFields"].as_array();
    let managers = managers.into_iter().flatten();
    let managers: Vec<_> = managers.map(|entry| &entry["manager"]).collect();
    assert_eq!(managers, ["decree-agent"]);
}

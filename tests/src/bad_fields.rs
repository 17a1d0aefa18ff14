//! The table of bad fields: `tests/bad_fields.toml`.

use decree_api::v1;
use serde::Deserialize;

use crate::template::Template;

/// Objects with one bad field each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadFields {
    /// Pods.
    pub pods: Vec<BadField>,
    /// ReplicaSets that cannot be named.
    pub nameless: Vec<BadField>,
    /// ReplicaSets that can be named.
    pub quarantined: Vec<BadField>,
}

/// An object with a bad field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadField {
    words: Vec<String>,
    /// The path of the field.
    pub named: String,
    /// The fault of the field.
    pub reason: String,
}

impl BadFields {
    /// Reads the table.
    ///
    /// # Panics
    /// If the table is invalid.
    pub fn read() -> Self {
        toml::from_str(include_str!("../bad_fields.toml")).expect("it is a table of objects")
    }
}

impl BadField {
    /// Returns the pod.
    pub fn pod(&self) -> v1::Pod {
        self.template("a", &[]).pod(0)
    }

    /// Returns the ReplicaSet.
    pub fn replica_set(&self) -> v1::ReplicaSet {
        self.template("web", &["match.app=web", "replicas=3"])
            .replica_set(0)
    }

    /// The template of the object: the bad field first, which takes precedence.
    fn template(&self, name: &str, more: &[&str]) -> Template {
        let identity = [format!("name={name}"), format!("uid={name}-uid")];
        let words = self.words.iter().chain(&identity).map(String::as_str);
        Template::read(words.chain(more.iter().copied()))
    }
}

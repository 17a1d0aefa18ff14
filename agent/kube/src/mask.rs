//! What is kept of an object while it is decoded: of a pod the few fields that are read, of a ReplicaSet its spec verbatim.
//!
//! Most of a pod is never looked at, and all of it would have to be held for as long as a list takes.

use std::fmt;

use serde::{
    Deserialize as _, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use Mask::{All, Only};

/// What is kept of a value. What is not of the expected shape is kept as it is: whoever reads it can say so.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mask {
    /// Everything.
    All,
    /// Of an object these fields, of a list these fields of each item.
    Only(&'static [(&'static str, Self)]),
}

/// A pod: what `agent_core::project` reads, and what tells that a deletion was the last word.
pub(super) const POD: Mask = Only(&[
    (
        "metadata",
        Only(&[
            ("name", All),
            ("namespace", All),
            ("uid", All),
            ("resourceVersion", All),
            ("labels", All),
            (
                "annotations",
                Only(&[("controller.kubernetes.io/pod-deletion-cost", All)]),
            ),
            ("ownerReferences", All),
            ("finalizers", All),
            ("creationTimestamp", All),
            ("deletionTimestamp", All),
            ("deletionGracePeriodSeconds", All),
        ]),
    ),
    (
        "spec",
        Only(&[
            ("nodeName", All),
            (
                "initContainers",
                Only(&[("name", All), ("restartPolicy", All)]),
            ),
        ]),
    ),
    (
        "status",
        Only(&[
            ("phase", All),
            (
                "conditions",
                Only(&[("type", All), ("status", All), ("lastTransitionTime", All)]),
            ),
            (
                "containerStatuses",
                Only(&[("name", All), ("restartCount", All)]),
            ),
            (
                "initContainerStatuses",
                Only(&[("name", All), ("restartCount", All)]),
            ),
        ]),
    ),
    ("kind", All),
    ("code", All),
    ("reason", All),
    ("message", All),
]);

/// A ReplicaSet: all of its spec, as pods are made from it.
pub(super) const REPLICA_SET: Mask = Only(&[
    (
        "metadata",
        Only(&[
            ("name", All),
            ("namespace", All),
            ("uid", All),
            ("resourceVersion", All),
            ("generation", All),
            ("ownerReferences", All),
            ("deletionTimestamp", All),
        ]),
    ),
    ("spec", All),
    ("status", All),
    ("kind", All),
    ("code", All),
    ("reason", All),
    ("message", All),
]);

/// Decodes a document and keeps what the mask says.
pub(super) fn decode(mask: Mask, bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = mask.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

impl<'de> DeserializeSeed<'de> for Mask {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            All => Value::deserialize(deserializer),
            Only(fields) => deserializer.deserialize_any(Fields(fields)),
        }
    }
}

struct Fields(&'static [(&'static str, Mask)]);

impl<'de> Visitor<'de> for Fields {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(field) = access.next_key_seed(Key(self.0))? {
            match field {
                Some((field, mask)) => {
                    kept.insert((*field).to_owned(), access.next_value_seed(*mask)?);
                }
                None => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Only(self.0))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Finds a key among the fields without a copy of it.
struct Key(&'static [(&'static str, Mask)]);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<&'static (&'static str, Mask)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<&'static (&'static str, Mask)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|(field, _)| *field == key))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keep(mask: Mask, value: &Value) -> Value {
        decode(mask, value.to_string().as_bytes()).expect("it is JSON")
    }

    #[test]
    fn pod_loses_what_is_never_read() {
        let pod = json!({
            "metadata": {"name": "a", "managedFields": [{"manager": "kubelet"}],
                "annotations": {"note": "long", "controller.kubernetes.io/pod-deletion-cost": "7"}},
            "spec": {"nodeName": "n", "containers": [{"env": [{"name": "SECRET"}]}],
                "initContainers": [{"name": "i", "image": "i"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        });
        let kept = json!({
            "metadata": {"name": "a", "annotations": {"controller.kubernetes.io/pod-deletion-cost": "7"}},
            "spec": {"nodeName": "n", "initContainers": [{"name": "i"}]},
            "status": {"phase": "Running"},
        });
        assert_eq!(keep(POD, &pod), kept);
    }

    #[test]
    fn template_keeps_a_field_that_no_released_kubernetes_knows() {
        let spec =
            json!({"replicas": 1, "template": {"spec": {"orbit": {"height": [1, 2.5, null]}}}});
        let kept = keep(REPLICA_SET, &json!({"metadata": {}, "spec": spec}));
        assert_eq!(kept["spec"], spec);
    }

    #[test]
    fn what_has_another_shape_is_left_to_the_reader() {
        let odd = json!({"metadata": "text", "spec": [true, 1], "status": null});
        assert_eq!(keep(POD, &odd), odd);
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        for text in ["", "{", "{} {}", "{\"metadata\": tru}"] {
            assert!(decode(POD, text.as_bytes()).is_err(), "{text:?}");
        }
    }
}

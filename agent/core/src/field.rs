//! A cursor over a JSON object that knows where it stands, so that errors name the field.

use std::{collections::HashMap, fmt};

use decree::v1;
use jiff::Timestamp;
use prost_types::Timestamp as WireTimestamp;
use serde_json::{Map, Value};

use crate::project::present_time;

/// One place in an object: its value if there is one, and the way to it.
///
/// `null` counts as absent everywhere, as it does when Kubernetes decodes an object.
#[derive(Clone, Copy)]
pub(crate) struct Field<'parent, 'value> {
    value: Option<&'value Value>,
    step: Step<'value>,
    parent: Option<&'parent Self>,
}

/// What is wrong at which field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) path: String,
    pub(crate) detail: String,
}

#[derive(Clone, Copy)]
enum Step<'value> {
    Root,
    Name(&'static str),
    Key(&'value str),
    Index(usize),
}

// === impl Field ===

impl<'value> Field<'_, 'value> {
    pub(crate) const fn root(value: &'value Value) -> Self {
        Self {
            value: Some(value),
            step: Step::Root,
            parent: None,
        }
    }

    /// Steps to a field of this object.
    pub(crate) fn at(&self, name: &'static str) -> Result<Field<'_, 'value>, FieldError> {
        let value = match self.value {
            None => None,
            Some(Value::Object(fields)) => find(fields, name),
            Some(_) => return Err(self.error("expected an object")),
        };
        Ok(Field {
            value,
            step: Step::Name(name),
            parent: Some(self),
        })
    }

    /// Steps to every element of this list.
    pub(crate) fn items(
        &self,
    ) -> Result<impl Iterator<Item = Field<'_, 'value>> + use<'_, 'value>, FieldError> {
        let items = match self.value {
            None => &[],
            Some(Value::Array(items)) => items.as_slice(),
            Some(_) => return Err(self.error("expected a list")),
        };
        Ok(items.iter().enumerate().map(|(index, value)| Field {
            value: Some(value).filter(|value| !value.is_null()),
            step: Step::Index(index),
            parent: Some(self),
        }))
    }

    pub(crate) const fn is_present(&self) -> bool {
        self.value.is_some()
    }

    /// Reads a text; absent is empty.
    pub(crate) fn text(&self) -> Result<&'value str, FieldError> {
        Ok(self.optional_text()?.unwrap_or_default())
    }

    pub(crate) fn optional_text(&self) -> Result<Option<&'value str>, FieldError> {
        match self.value {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.error("expected a string")),
        }
    }

    pub(crate) fn required_text(&self) -> Result<&'value str, FieldError> {
        match self.text()? {
            "" => Err(self.error("is required")),
            text => Ok(text),
        }
    }

    pub(crate) fn optional_bool(&self) -> Result<Option<bool>, FieldError> {
        match self.value {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.error("expected true or false")),
        }
    }

    /// Reads a 64-bit integer; absent is 0.
    pub(crate) fn int64(&self) -> Result<i64, FieldError> {
        let Some(value) = self.value else {
            return Ok(0);
        };
        value
            .as_i64()
            .ok_or_else(|| self.error("expected a 64-bit integer"))
    }

    /// Reads a 32-bit integer; absent is 0.
    pub(crate) fn int32(&self) -> Result<i32, FieldError> {
        Ok(self.optional_int32()?.unwrap_or_default())
    }

    pub(crate) fn optional_int32(&self) -> Result<Option<i32>, FieldError> {
        let Some(value) = self.value else {
            return Ok(None);
        };
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        number
            .map(Some)
            .ok_or_else(|| self.error("expected a 32-bit integer"))
    }

    /// Reads a time to the second; `null` and Go's zero time are absent (spec 1.1).
    pub(crate) fn time(&self) -> Result<Option<WireTimestamp>, FieldError> {
        let Some(text) = self.optional_text()? else {
            return Ok(None);
        };
        let time: Timestamp = text
            .parse()
            .map_err(|_| self.error("expected a time such as 2026-01-31T12:00:00Z"))?;
        let seconds = time.as_nanosecond().div_euclid(1_000_000_000);
        let seconds = i64::try_from(seconds).map_err(|_| self.error("is out of range"))?;
        Ok(present_time(seconds))
    }

    /// Reads a map of texts, such as labels; absent is empty.
    pub(crate) fn texts(&self) -> Result<HashMap<String, String>, FieldError> {
        let fields = match self.value {
            None => return Ok(HashMap::new()),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(self.error("expected an object")),
        };
        let entry = |(key, value): (&'value String, &'value Value)| {
            let field = Field {
                value: Some(value),
                step: Step::Key(key),
                parent: Some(self),
            };
            Ok((key.clone(), field.text()?.to_owned()))
        };
        fields.iter().map(entry).collect()
    }

    /// Reads one entry of a map of texts.
    pub(crate) fn entry(&self, key: &'value str) -> Result<Option<&'value str>, FieldError> {
        let value = match self.value {
            None => return Ok(None),
            Some(Value::Object(fields)) => find(fields, key),
            Some(_) => return Err(self.error("expected an object")),
        };
        Field {
            value,
            step: Step::Key(key),
            parent: Some(self),
        }
        .optional_text()
    }

    /// Reads the managing owner from `ownerReferences`: the first entry whose `controller` is true.
    pub(crate) fn controller(&self) -> Result<Option<v1::OwnerReference>, FieldError> {
        for owner in self.items()? {
            if owner.at("controller")?.optional_bool()? == Some(true) {
                return Ok(Some(v1::OwnerReference {
                    api_version: owner.at("apiVersion")?.text()?.to_owned(),
                    kind: owner.at("kind")?.text()?.to_owned(),
                    name: owner.at("name")?.text()?.to_owned(),
                    uid: owner.at("uid")?.text()?.to_owned(),
                    block_owner_deletion: owner.at("blockOwnerDeletion")?.optional_bool()?,
                }));
            }
        }
        Ok(None)
    }

    fn error(&self, detail: &str) -> FieldError {
        FieldError {
            path: self.to_string(),
            detail: detail.to_owned(),
        }
    }
}

/// Finds a field that is not `null` by looking at each: the objects of the API have few, and comparing a dozen lengths costs
/// less than hashing one name.
fn find<'value>(fields: &'value Map<String, Value>, name: &str) -> Option<&'value Value> {
    let (_, value) = fields.iter().find(|(key, _)| key.as_str() == name)?;
    (!value.is_null()).then_some(value)
}

impl fmt::Display for Field<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        let below_root = self.parent.is_some_and(|parent| parent.parent.is_some());
        match self.step {
            Step::Root => Ok(()),
            Step::Name(name) if below_root => write!(f, ".{name}"),
            Step::Name(name) => f.write_str(name),
            Step::Key(key) => write!(f, "[{key:?}]"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

//! The collector of traces, from the environment variables of OpenTelemetry.

use std::{env, path::PathBuf, time::Duration};

use crate::transport::{Endpoint, EndpointError};
use thiserror::Error;

/// The beginnings of OpenTelemetry variables, the one for traces first.
const PREFIXES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"];
/// The default export timeout.
const TIMEOUT: Duration = Duration::from_secs(10);
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// The collector of traces.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) ca: Option<PathBuf>,
    /// The export timeout of a batch.
    pub(crate) timeout: Duration,
}

/// An environment variable has an invalid endpoint.
#[derive(Debug, Error)]
#[error("{variable}")]
pub struct VariableError {
    variable: String,
    #[source]
    source: EndpointError,
}

// === impl Target ===

impl Target {
    /// The collector of the environment; `None` if there is none.
    pub(crate) fn of_environment() -> Result<Option<Self>, VariableError> {
        Self::of(|variable| env::var(variable).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, VariableError> {
        let variable = &variable;
        let set = |end: &'static str| {
            PREFIXES.into_iter().filter_map(move |prefix| {
                let name = format!("{prefix}{end}");
                let value = variable(&name).filter(|value| !value.is_empty())?;
                Some((name, value))
            })
        };
        let is_disabled = variable(DISABLED).is_some_and(|it| it.eq_ignore_ascii_case("true"));
        let endpoint = set("ENDPOINT").next().filter(|_| !is_disabled);
        let Some((name, value)) = endpoint else {
            return Ok(None);
        };
        let endpoint = value.parse().map_err(|source| VariableError {
            variable: name,
            source,
        })?;
        Ok(Some(Self {
            endpoint,
            ca: set("CERTIFICATE").next().map(|(_, file)| file.into()),
            timeout: set("TIMEOUT")
                .find_map(|(_, milliseconds)| milliseconds.parse().ok())
                .map_or(TIMEOUT, Duration::from_millis),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_traced_unless_someone_asks_for_it() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4317/");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4317");
        let empty = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "");
        let disabled = ("OTEL_SDK_DISABLED", "true");
        for (variables, expected) in [
            (&[][..], None),
            (&[all], Some("http://all:4317")),
            (&[all, traces], Some("http://traces:4317")),
            (&[all, empty], Some("http://all:4317")),
            (&[all, disabled], None),
        ] {
            let variable = |name: &str| {
                let (_, value) = variables.iter().find(|(it, _)| *it == name)?;
                Some((*value).to_owned())
            };
            let target = Target::of(variable).expect("it is a target");
            let endpoint = target.map(|target| target.endpoint.to_string());
            assert_eq!(endpoint.as_deref(), expected, "{variables:?}");
        }
    }

    #[test]
    fn variable_that_is_no_endpoint_is_named() {
        let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let variable = |it: &str| (it == name).then(|| "collector".to_owned());
        let error = Target::of(variable).err();
        let error = error.map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(name));
    }
}

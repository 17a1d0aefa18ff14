//! The collector of traces, from the environment variables of OpenTelemetry.

use std::{env, error::Error as StdError, path::PathBuf, time::Duration};

use thiserror::Error;

use crate::transport::Endpoint;

/// The beginnings of OpenTelemetry variables, the one for traces first.
const PREFIXES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"];
/// The default export timeout.
const TIMEOUT: Duration = Duration::from_secs(10);
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// The sampler and its ratio, which the SDK reads. It silently samples everything if the ratio is invalid.
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const RATIO: &str = "OTEL_TRACES_SAMPLER_ARG";

/// The collector of traces.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) ca: Option<PathBuf>,
    /// The export timeout of a batch.
    pub(crate) timeout: Duration,
}

/// An environment variable has an invalid value.
#[derive(Debug, Error)]
#[error("{variable}")]
pub struct VariableError {
    variable: String,
    #[source]
    source: Box<dyn StdError + Send + Sync>,
}

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
        let endpoint = value.parse::<Endpoint>().map_err(|source| VariableError {
            variable: name,
            source: source.into(),
        })?;
        let has_ratio = variable(SAMPLER).is_some_and(|it| it.ends_with("traceidratio"));
        let ratio = variable(RATIO).filter(|_| has_ratio);
        let is_ratio = |it: &String| (it.parse::<f64>()).is_ok_and(|it| (0.0..=1.0).contains(&it));
        if ratio.is_some_and(|it| !is_ratio(&it)) {
            return Err(VariableError {
                variable: RATIO.to_owned(),
                source: "must be a number from 0 to 1".into(),
            });
        }
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
    fn ratio_out_of_range_is_refused() {
        for (ratio, is_taken) in [("0.01", true), ("1", true), ("1.1", false), ("1%", false)] {
            let variable = |name: &str| match name {
                "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://all:4317".to_owned()),
                SAMPLER => Some("parentbased_traceidratio".to_owned()),
                RATIO => Some(ratio.to_owned()),
                _ => None,
            };
            assert_eq!(Target::of(variable).is_ok(), is_taken, "{ratio}");
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

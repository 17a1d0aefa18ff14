//! The tracing flags of both binaries.

use std::{env, path::PathBuf, time::Duration};

use crate::transport::{Endpoint, EndpointError};
use clap::Args;
use thiserror::Error;

/// The beginnings of OpenTelemetry variables, the one for traces first.
const PREFIXES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"];
/// The default export timeout.
const TIMEOUT: Duration = Duration::from_secs(10);
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// Export of traces. Flatten it into the binary's arguments.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Traces")]
pub struct OtlpArgs {
    /// The OpenTelemetry collector for traces, by OTLP over gRPC: `http://HOST:4317`, `https://HOST:4317` or `unix:PATH`. By default
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`; without either, no traces are exported
    #[arg(long, env = "DECREE_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<Endpoint>,

    /// File with the CA certificates for checking an `https` collector, in PEM. By default `OTEL_EXPORTER_OTLP_CERTIFICATE`
    #[arg(long, env = "DECREE_OTLP_CA", value_name = "FILE")]
    pub otlp_ca: Option<PathBuf>,

    /// The share of traced decisions, 0 to 1. The agent traces at most this share of the calls of traced decisions
    #[arg(
        long,
        env = "DECREE_OTLP_SAMPLE_RATIO",
        default_value_t = 1.0,
        value_name = "RATIO",
        value_parser = ratio
    )]
    pub otlp_sample_ratio: f64,
}

/// The collector of traces, from flags and environment.
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

// === impl OtlpArgs ===

impl Default for OtlpArgs {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            otlp_ca: None,
            otlp_sample_ratio: 1.0,
        }
    }
}

impl OtlpArgs {
    /// The collector; `None` if there is none.
    pub(crate) fn target(&self) -> Result<Option<Target>, VariableError> {
        self.target_in(|variable| env::var(variable).ok())
    }

    /// The collector in an environment. A flag takes precedence over a variable, and so does the flag's own variable.
    fn target_in(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Target>, VariableError> {
        let variable = &variable;
        let set = |end: &'static str| {
            PREFIXES.into_iter().filter_map(move |prefix| {
                let name = format!("{prefix}{end}");
                let value = variable(&name).filter(|value| !value.is_empty())?;
                Some((name, value))
            })
        };
        let disabled = variable(DISABLED).is_some_and(|it| it.eq_ignore_ascii_case("true"));
        let endpoint = match &self.otlp_endpoint {
            Some(endpoint) => Some(endpoint.clone()),
            None if disabled => None,
            None => {
                let parse = |(variable, value): (String, String)| {
                    let parsed = value.parse();
                    parsed.map_err(|source| VariableError { variable, source })
                };
                set("ENDPOINT").next().map(parse).transpose()?
            }
        };
        Ok(endpoint.map(|endpoint| Target {
            endpoint,
            ca: self
                .otlp_ca
                .clone()
                .or_else(|| set("CERTIFICATE").next().map(|(_, file)| file.into())),
            timeout: set("TIMEOUT")
                .find_map(|(_, milliseconds)| milliseconds.parse().ok())
                .map_or(TIMEOUT, Duration::from_millis),
        }))
    }
}

fn ratio(text: &str) -> Result<f64, &'static str> {
    let ratio = text.parse().ok();
    let ratio = ratio.filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or("must be a number from 0 to 1, such as 0.01")
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
        let flag = Some("http://flag:4317");
        for (flag, variables, expected) in [
            (None, &[][..], None),
            (None, &[all], Some("http://all:4317")),
            (None, &[all, traces], Some("http://traces:4317")),
            (None, &[all, empty], Some("http://all:4317")),
            (None, &[all, disabled], None),
            (flag, &[all, disabled], flag),
        ] {
            let args = OtlpArgs {
                otlp_endpoint: flag.and_then(|flag| flag.parse().ok()),
                ..OtlpArgs::default()
            };
            let variable = |name: &str| {
                let (_, value) = variables.iter().find(|(it, _)| *it == name)?;
                Some((*value).to_owned())
            };
            let target = args.target_in(variable).expect("it is a target");
            let endpoint = target.map(|target| target.endpoint.to_string());
            assert_eq!(endpoint.as_deref(), expected, "{variables:?}");
        }
    }

    #[test]
    fn variable_that_is_no_endpoint_is_named() {
        let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let variable = |it: &str| (it == name).then(|| "collector".to_owned());
        let error = OtlpArgs::default().target_in(variable).err();
        let error = error.map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(name));
    }

    #[test]
    fn ratio_is_a_number_from_0_to_1() {
        for text in ["0", "1", "0.25", "0.000001"] {
            assert_eq!(ratio(text).map(|it| it.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "-0.1", "1.1", "NaN", "inf", "half"] {
            assert!(ratio(text).is_err(), "{text}");
        }
    }
}

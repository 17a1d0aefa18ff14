//! The metrics page in the format that the client requests: Prometheus' text format, or OpenMetrics.
//!
//! The registry writes OpenMetrics. The text format differs only in comments and suffixes, so its page is made from OpenMetrics.

use std::fmt::{self, Write as _};

use prometheus_client::{encoding::text, registry::Registry};

/// The format of a metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// Prometheus' text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

// === impl Exposition ===

impl Exposition {
    /// Parses an `Accept` header. As in Prometheus' own libraries, a client gets OpenMetrics only if the header names it, and text otherwise.
    pub(crate) fn accepted(accept: &str) -> Self {
        let ranges = accept.split(',').filter_map(|range| {
            let (format, quality) = asked(range)?;
            (quality > 0.0).then_some((format, quality))
        });
        // Of equals, the first one wins.
        let best = ranges.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map_or(Self::Text, |(format, _)| format)
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// # Errors
    /// If a metric cannot be written.
    pub(crate) fn page(self, registry: &Registry) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, registry)?;
        match self {
            Self::Text => as_text(&page),
            Self::OpenMetrics => Ok(page),
        }
    }
}

/// The format of one media range, if supported, and its quality.
fn asked(range: &str) -> Option<(Exposition, f64)> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    let (mut version, mut quality) = (None, 1.0);
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "version" => version = Some(value.trim()),
            "q" => quality = value.trim().parse().ok()?,
            _ => {}
        }
    }
    let format = match (media.as_str(), version) {
        ("application/openmetrics-text", None | Some("1.0.0")) => Exposition::OpenMetrics,
        ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => Exposition::Text,
        _ => return None,
    };
    Some((format, quality))
}

/// Converts a page of OpenMetrics. OpenMetrics names a family without the suffix of its samples, and the text format has fewer types.
fn as_text(page: &str) -> Result<String, fmt::Error> {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        let mut words = line.splitn(4, ' ');
        match [words.next(), words.next(), words.next(), words.next()] {
            [Some("#"), Some("HELP"), Some(_), said] => help = said,
            [Some("#"), Some("TYPE"), Some(name), Some(kind)] => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "stateset" => ("", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                if let Some(help) = help.take() {
                    let help = help.replace("\\\"", "\"");
                    writeln!(text, "# HELP {name}{suffix} {help}")?;
                }
                writeln!(text, "# TYPE {name}{suffix} {kind}")?;
            }
            [Some("#"), ..] => {}
            _ => writeln!(text, "{}", without_exemplar(line))?,
        }
    }
    Ok(text)
}

/// A sample without its exemplar, which only OpenMetrics has. The value of a label may contain the separator.
fn without_exemplar(line: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let begins = line.bytes().position(|byte| {
        let escapes = is_quoted && !is_escaped && byte == b'\\';
        is_quoted ^= byte == b'"' && !is_escaped;
        is_escaped = escapes;
        byte == b'#' && !is_quoted
    });
    begins.map_or(line, |at| line[..at].trim_end())
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::{
        counter::Counter, exemplar::HistogramWithExemplars, family::Family, gauge::Gauge,
        info::Info,
    };

    use super::*;

    /// The header of Prometheus 2 and 3.
    const PROMETHEUS_2: &str = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                                text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    const PROMETHEUS_3: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,\
                                text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

    #[test]
    fn openmetrics_is_for_those_who_ask_for_it() {
        for accept in [
            PROMETHEUS_2,
            PROMETHEUS_3,
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8",
            "text/plain;q=0.5, application/openmetrics-text",
        ] {
            let accepted = Exposition::accepted(accept);
            assert_eq!(accepted, Exposition::OpenMetrics, "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "text/html,application/xml;q=0.9,*/*;q=0.8",
            "text/plain",
            "text/plain;version=0.0.4",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0.1, text/plain;q=0.2",
            "application/openmetrics-text;q=much",
            "application/json",
        ] {
            assert_eq!(Exposition::accepted(accept), Exposition::Text, "{accept}");
        }
    }

    #[test]
    fn text_names_families_as_their_samples_and_has_no_exemplars() {
        let mut registry = Registry::default();
        let counter = Family::<[(&str, &str); 1], Counter>::default();
        counter.get_or_create(&[("name", "a \\\" # {b")]).inc();
        registry.register("calls", "Calls", counter);
        registry.register("build", "The build", Info::new([("version", "1")]));
        registry.register("open", "Open", Gauge::<i64>::default());
        let took = HistogramWithExemplars::new([0.5].into_iter());
        took.observe(0.25, Some([("trace_id", "4bf9")]), None);
        registry.register("took_seconds", "How long", took);
        let page = |format: Exposition| format.page(&registry).expect("it can be written");
        let open = page(Exposition::OpenMetrics);
        let exemplar = "took_seconds_bucket{le=\"0.5\"} 1 # {trace_id=\"4bf9\"} 0.25\n";
        assert!(open.contains(exemplar), "{open}");
        assert_eq!(
            page(Exposition::Text),
            "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{name=\"a \\\\\\\" # {b\"} 1\n\
             # HELP build_info The build.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n\
             # HELP open Open.\n# TYPE open gauge\nopen 0\n\
             # HELP took_seconds How long.\n# TYPE took_seconds histogram\n\
             took_seconds_sum 0.25\ntook_seconds_count 1\ntook_seconds_bucket{le=\"0.5\"} 1\ntook_seconds_bucket{le=\"+Inf\"} 1\n"
        );
    }
}

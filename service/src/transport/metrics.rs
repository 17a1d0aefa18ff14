//! The metrics of TLS, with the same names in the server and in the agent.

use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::{metrics, transport::files::Expiries};

type Label = [(&'static str, &'static str); 1];

metrics! {
    /// The metrics of TLS. Clones share the values.
    pub struct Metrics {}
    handshake_failures: Family<Label, Counter> = "decree_tls_handshake_failures",
        "Connections that ended in their handshake by reason. no_certificate, expired, unknown_issuer: look at the other side's files";
    reloads: Counter = "decree_tls_reloads",
        "How often changed files of TLS were taken over";
    reload_errors: Counter = "decree_tls_reload_errors",
        "How often changed files of TLS could not be used, and the ones before stayed in use. Growing: the log says why";
    expiry: Family<Label, Gauge<f64, AtomicU64>> = "decree_tls_expiry_timestamp_seconds",
        "When the first certificate (file cert, ca) or revocation list (file crl) in use expires. Near: renew it";
}

impl Metrics {
    /// Registers all metrics.
    pub fn register_tls(&self, registry: &mut Registry) {
        self.register_table(registry);
    }

    /// Counts a connection that ended before its first call.
    pub fn handshake_failed(&self, reason: &'static str) {
        self.handshake_failures
            .get_or_create(&[("reason", reason)])
            .inc();
    }

    pub(crate) fn set_expiries(&self, expiries: &Expiries) {
        let Expiries { cert, ca, crl } = expiries;
        for (file, expiry) in [("cert", cert), ("ca", ca), ("crl", crl)] {
            if let Some(expiry) = expiry {
                self.expiry
                    .get_or_create(&[("file", file)])
                    .set(seconds(*expiry));
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a date fit")]
fn seconds(time: Timestamp) -> f64 {
    time.as_second() as f64
}

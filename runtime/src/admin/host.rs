//! The host names that no outsider can own.

use std::net::IpAddr;

use axum::http::{HeaderMap, header, uri::Authority};

/// The last labels of names that nobody can register on the internet: machines, Kubernetes, and reserved names.
const INNER: [&str; 5] = ["localhost", "svc", "local", "internal", "test"];

/// Whether each `Host` of a request is an address, or a name that nobody on the internet can point at this machine. A request without a
/// `Host` does not come from a browser.
pub(super) fn is_of_no_stranger(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    hosts.all(|host| host.to_str().is_ok_and(is_inner))
}

fn is_inner(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host().trim_matches(['[', ']']);
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_address = name.parse::<IpAddr>().is_ok();
    is_address
        || match name.rsplit_once('.') {
            // A search domain of this machine completes the name.
            None => !name.is_empty(),
            Some((_, last)) => INNER.contains(&last),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().expect("printable"));
        }
        is_of_no_stranger(&headers)
    }

    #[test]
    fn names_that_a_stranger_can_have_lead_here_are_refused() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "10.244.0.7:8080",
            "[::1]:8080",
            "decree-server:8080",
            "decree-server.decree-system.svc:8080",
            "decree-server.decree-system.svc.cluster.local.:8080",
        ] {
            assert!(asked(&[host]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "127.0.0.1.evil.example",
            "decree.svc.evil.example",
            "",
            "user@evil.example",
        ] {
            assert!(!asked(&[host]), "{host}");
        }
        assert!(asked(&[]));
        assert!(!asked(&["localhost", "evil.example"]));
    }
}

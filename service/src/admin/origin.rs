//! Requests of foreign pages in a browser of someone who can reach the port.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, header, uri::Authority};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a request that a foreign page may have made. Such a page names this port by a name that its owner has pointed here, which the
/// `Host` shows, or asks across sites, which `Sec-Fetch-Site` shows. A request without a `Host` does not come from a browser.
///
/// # Errors
/// Why the request is refused.
pub(super) fn check(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    if !hosts.all(|host| host.to_str().is_ok_and(is_address)) {
        return Err("this port is reached as localhost or by an IP address, and by no other name");
    }
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    if !sites.all(|site| site == "same-origin" || site == "none") {
        return Err("pages of other sites cannot use this port");
    }
    Ok(())
}

/// Whether a host is an address. The owner of a name chooses where the name leads; nobody chooses where an address leads.
fn is_address(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host().trim_matches(['[', ']']);
    let is_plain = !authority.as_str().contains('@');
    is_plain && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &HeaderName, values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().expect("printable"));
        }
        check(&headers).is_ok()
    }

    #[test]
    fn names_that_a_stranger_can_have_lead_here_are_refused() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "10.244.0.7:8080",
            "[::1]:8080",
        ] {
            assert!(asked(&header::HOST, &[host]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:8080",
            "127.0.0.1.evil.example",
            "user@127.0.0.1",
            // A router, an access point or a search domain may resolve these names for a stranger.
            "decree-server:8080",
            "evil.local",
            "evil.internal",
            "evil.test",
            "evil.localhost",
            "x.evil.svc",
            "decree-server.decree-system.svc.cluster.local",
        ] {
            assert!(!asked(&header::HOST, &[host]), "{host}");
        }
        assert!(asked(&header::HOST, &[]));
        assert!(!asked(&header::HOST, &["localhost", "evil.example"]));
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        for (site, may_ask) in [
            ("none", true),
            ("same-origin", true),
            ("same-site", false),
            ("cross-site", false),
            ("", false),
        ] {
            assert_eq!(asked(&SEC_FETCH_SITE, &[site]), may_ask, "{site}");
        }
    }
}

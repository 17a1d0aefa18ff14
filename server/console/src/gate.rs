//! Access to the console: no access for pages of other sites, and no plain text to other machines.
//!
//! The admin port speaks plain HTTP, so its pages and tokens must not leave this machine unless `--insecure` allows it. A browser on
//! this machine also runs foreign pages. A foreign page whose domain name resolves to this machine is recognized by the `Host` header.
//! A cross-site request is recognized by `Sec-Fetch-Site`.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use runtime::admin::AdminPeer;

use crate::{answer::Refused, console_state::ConsoleState};

/// Allows only the console's files, and no embedding in other pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (header::VARY, "authorization"),
];

/// The maximum length of a query: the percent-encoded names of a cluster, a namespace and a ReplicaSet, with a margin. Without the limit,
/// each field of a longer query would cost memory and time before the refusal.
const QUERY_BYTES_MAX: usize = 4 << 10;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The method whose permission the console requires.
const METHOD: &str = "/decree.v1.InspectionService/ListReplicaSets";

/// Admits requests from places where the console may be shown, and adds the security headers to the responses.
pub(crate) async fn admit(
    State(state): State<Arc<ConsoleState>>,
    ConnectInfo(peer): ConnectInfo<AdminPeer>,
    request: Request,
    next: Next,
) -> Response {
    let insecure = state.config.insecure;
    let checked = check(peer.address.ip(), insecure, request.headers());
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    response
}

/// Admits callers with any permission to view, and adds the caller to the request.
pub(crate) async fn authorize(
    State(state): State<Arc<ConsoleState>>,
    ConnectInfo(peer): ConnectInfo<AdminPeer>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refused> {
    let query = request.uri().query().unwrap_or_default().len();
    if query > QUERY_BYTES_MAX {
        let description = format!("has {query} bytes, and may have {QUERY_BYTES_MAX}");
        return Err(Refused::field("query", &description));
    }
    let authorized = state
        .server
        .authorize(METHOD, request.headers(), peer.address);
    let caller = authorized.await?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

fn check(peer: IpAddr, insecure: bool, headers: &HeaderMap) -> Result<(), &'static str> {
    if !insecure && !peer.to_canonical().is_loopback() {
        return Err(
            "the console speaks plain HTTP and is shown on the server's own machine only: use `kubectl port-forward` \
             or an SSH tunnel, or accept that others on the network may read it with --insecure",
        );
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_address) {
        return Err(
            "the console is reached as localhost or by an IP address, and by no other name",
        );
    }
    let site = headers.get(SEC_FETCH_SITE);
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return Err("pages of other sites may not ask for the console");
    }
    Ok(())
}

/// Whether a host is an address. A foreign site can choose where its name resolves to, but not an address.
fn is_address(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn asked(host: &str, site: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("printable"));
        if let Some(site) = site {
            headers.insert(SEC_FETCH_SITE, site.parse().expect("printable"));
        }
        headers
    }

    #[test]
    fn names_that_can_be_made_to_lead_here_are_refused() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
        ] {
            assert_eq!(check(HERE, false, &asked(host, None)), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert!(check(HERE, true, &asked(host, None)).is_err(), "{host}");
        }
        assert!(check(HERE, false, &HeaderMap::new()).is_err());
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let asked = |site| check(HERE, false, &asked("localhost", Some(site)));
        assert!(asked("cross-site").is_err() && asked("same-site").is_err());
        assert!(asked("same-origin").is_ok() && asked("none").is_ok());
    }

    #[test]
    fn other_machines_are_shown_it_only_where_that_is_accepted() {
        let headers = asked("192.0.2.1:8080", None);
        let there = IpAddr::from([192, 0, 2, 7]);
        assert!(check(there, false, &headers).is_err());
        assert_eq!(check(there, true, &headers), Ok(()));
        let mapped = "::ffff:127.0.0.1".parse().expect("an address");
        assert_eq!(check(mapped, false, &headers), Ok(()));
    }
}

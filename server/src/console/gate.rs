//! Access to the console: no plain text to other machines.
//!
//! The admin port speaks plain HTTP, so the console's pages and tokens must not leave this machine unless `--insecure` allows it. The port
//! itself refuses the requests of foreign pages.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{Extensions, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use service::admin::AdminPeer;

use super::{answer::Refused, state::ConsoleState};
use crate::peer::ConnectionPeer;

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

/// The method whose permission the console requires.
const METHOD: &str = "/decree.v1.InspectionService/ListReplicaSets";

/// Admits requests from places where the console may be shown, and adds the security headers to the responses.
pub(crate) async fn admit(
    State(insecure): State<bool>,
    ConnectInfo(peer): ConnectInfo<AdminPeer>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match check(peer.address.ip(), insecure) {
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
    let (shared, mut extensions) = (&state.shared, Extensions::new());
    extensions.insert(ConnectionPeer::of_admin(peer.address));
    let authorized = shared
        .access
        .authorize(METHOD, request.headers(), &extensions);
    let caller = authorized.await?;
    shared.check_draining()?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

fn check(peer: IpAddr, insecure: bool) -> Result<(), &'static str> {
    if insecure || peer.to_canonical().is_loopback() {
        return Ok(());
    }
    Err(
        "the console speaks plain HTTP and is shown on the server's own machine only: use `kubectl port-forward` \
         or an SSH tunnel, or accept that others on the network may read it with --insecure",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_shown_it_only_where_that_is_accepted() {
        let there = IpAddr::from([192, 0, 2, 7]);
        assert!(check(there, false).is_err());
        assert_eq!(check(there, true), Ok(()));
        for here in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let here = here.parse().expect("an address");
            assert_eq!(check(here, false), Ok(()), "{here}");
        }
    }
}

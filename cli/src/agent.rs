//! Requests to the admin port of an agent.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use runtime::failure::chain;

use crate::{
    exit::{Exit, Failure},
    http::exchange,
};

/// Requests a page of an agent, or, with a JSON body, an action. The answer may be a refusal.
pub(crate) async fn ask(
    url: &str,
    path: &str,
    body: Option<Vec<u8>>,
    timeout: Duration,
) -> Result<(StatusCode, Bytes), Failure> {
    let request = request(url, path, body)?;
    let answer = exchange(request, timeout).await;
    answer.map_err(|cause| unreachable(url, &cause))
}

fn request(url: &str, path: &str, body: Option<Vec<u8>>) -> Result<Request<Full<Bytes>>, Failure> {
    let uri = url.trim_end_matches('/').parse::<Uri>().ok();
    let is_base = |uri: &Uri| {
        uri.scheme_str() == Some("http") && uri.authority().is_some() && uri.path() == "/"
    };
    if !uri.as_ref().is_some_and(is_base) {
        let cause = format!("--agent {url} is not http://HOST:PORT");
        return Err(Failure::new(Exit::Usage, cause));
    }
    let method = match body {
        Some(_) => Method::POST,
        None => Method::GET,
    };
    Request::builder()
        .method(method)
        .uri(format!("{}{path}", url.trim_end_matches('/')))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::from(body.unwrap_or_default()))
        .map_err(|error| Failure::new(Exit::Usage, chain(&error)))
}

fn unreachable(url: &str, cause: &str) -> Failure {
    let failure = Failure::new(Exit::Unreachable, format!("agent {url}: {cause}"));
    failure.hint("--agent is the admin address of decree-agent; its log names it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_of_hosts_are_asked() {
        assert!(request("http://127.0.0.1:8081", "/holds", None).is_ok());
        assert!(request("http://localhost:8081/", "/holds", None).is_ok());
        for url in [
            "",
            "127.0.0.1:8081",
            "https://a:1",
            "http://a:1/b",
            "unix:a",
            "http://",
        ] {
            let failure = request(url, "/holds", None).expect_err("it is none");
            assert_eq!(failure.exit, Exit::Usage, "{url:?}");
        }
    }
}

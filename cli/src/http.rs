//! Requests to the admin ports of other processes, over plain HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use service::failure::chain;
use service::transport::Endpoint;

use crate::exit::{Exit, Failure};

/// The maximum timeout of a request to an agent, whose pages are small.
const PATIENCE: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Requests a page, or, with a JSON body, an action. The answer may be a refusal.
///
/// # Errors
/// Says why there is no answer: the URL is invalid, nobody responds, not within `timeout`, or the answer is too large.
pub(crate) async fn exchange(
    url: &str,
    body: Option<Vec<u8>>,
    timeout: Duration,
) -> Result<(StatusCode, Bytes), String> {
    let method = body.as_ref().map_or(Method::GET, |_| Method::POST);
    let request = Request::builder()
        .method(method)
        .uri(url)
        // The port refuses names, which pages in a browser could have pointed at it.
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::<Bytes>::from(body.unwrap_or_default()))
        .map_err(|error| error.to_string())?;
    let answer = async {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.request(request).await;
        let answer = answer.map_err(|error| words(&chain(&error)))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    };
    let answer = tokio::time::timeout(timeout, answer).await;
    answer.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

/// The error of a request, in words for a person if the port is another one.
fn words(error: &str) -> String {
    let foreign = ["invalid HTTP version", "received unexpected message"];
    if foreign.iter().any(|part| error.contains(part)) {
        return "the port does not speak HTTP/1.1: it may be the one for gRPC".to_owned();
    }
    error.to_owned()
}

/// Requests a page of an agent. The answer may be a refusal.
pub(crate) async fn ask_agent(
    url: &str,
    path: &str,
    timeout: Duration,
) -> Result<(StatusCode, Bytes), Failure> {
    let url = base(url)?;
    let answer = exchange(&format!("{url}{path}"), None, timeout.min(PATIENCE)).await;
    answer.map_err(|cause| {
        let failure = Failure::new(Exit::Unreachable, format!("agent {url}: {cause}"));
        failure.hint("--agent is the admin address of decree-agent; its log names it")
    })
}

/// The address without a slash at its end, if it is one of plain HTTP without a path.
fn base(url: &str) -> Result<&str, Failure> {
    match url.parse() {
        Ok(Endpoint::Http(_)) => Ok(url.trim_end_matches('/')),
        Ok(Endpoint::Https(_) | Endpoint::Unix(_)) | Err(_) => {
            // The URL may have a password.
            Err(Failure::new(Exit::Usage, "--agent is not http://HOST:PORT"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn port_that_accepts_and_says_nothing_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = silent.local_addr().expect("it is bound");
        let url = format!("http://{address}/");
        let answer = exchange(&url, None, Duration::from_millis(20)).await;
        assert_eq!(answer, Err("no answer in time".to_owned()));
    }

    #[tokio::test]
    async fn port_of_another_protocol_is_told() {
        let foreign = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/", foreign.local_addr().expect("it is bound"));
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = foreign.accept().expect("it asks");
            // The first frame of a server of HTTP/2.
            std::io::Write::write_all(&mut stream, &[0, 0, 0, 4, 0, 0, 0, 0, 0])
        });
        let answer = exchange(&url, None, Duration::from_secs(60)).await;
        answering.join().expect("it ends").expect("it reads");
        let said = answer.expect_err("it is no HTTP/1.1");
        assert!(
            said.starts_with("the port does not speak HTTP/1.1"),
            "{said}"
        );
    }

    #[test]
    fn only_plain_addresses_of_hosts_are_asked() {
        assert!(base("http://127.0.0.1:8081").is_ok());
        assert!(base("http://localhost:8081/").is_ok());
        for url in [
            "",
            "127.0.0.1:8081",
            "https://a:1",
            "http://a:1/b",
            "http://user:password@a:1",
            "unix:a",
            "http://",
        ] {
            let failure = base(url).expect_err("it is none");
            assert_eq!(failure.exit, Exit::Usage, "{url:?}");
        }
    }
}

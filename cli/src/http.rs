//! One request to the admin port of another process, over plain HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use runtime::failure::chain;

/// The maximum size of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Sends a request. The answer may be a refusal.
///
/// # Errors
/// Says why there is no answer: nobody responds, not within `timeout`, or the answer is too large.
pub(crate) async fn exchange(
    request: Request<Full<Bytes>>,
    timeout: Duration,
) -> Result<(StatusCode, Bytes), String> {
    let answer = async {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.request(request).await;
        let answer = answer.map_err(|error| chain(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    };
    let answer = tokio::time::timeout(timeout, answer).await;
    answer.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn port_that_accepts_and_says_nothing_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = silent.local_addr().expect("it is bound");
        let request = Request::get(format!("http://{address}/")).body(Full::default());
        let request = request.expect("an address is part of a URL");
        let answer = exchange(request, Duration::from_millis(20));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        assert_eq!(
            runtime.block_on(answer),
            Err("no answer in time".to_owned())
        );
    }
}

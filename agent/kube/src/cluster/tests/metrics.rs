//! The metrics of requests that are answered, refused, cut off and given up.

use prometheus_client::{encoding::text, registry::Registry};

use super::*;

/// The lines of a metric, sorted.
fn lines(server: &Server, metric: &str) -> Vec<String> {
    let mut registry = Registry::default();
    server.cluster.register_metrics(&mut registry);
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("a string takes everything");
    let lines = page.lines().filter(|line| line.starts_with(metric));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn requests(server: &Server, expected: &[(&str, &str, u32)]) {
    let line = |(code, method, count): &(&str, &str, u32)| {
        let host = server.host();
        format!(
            r#"rest_client_requests_total{{code="{code}",method="{method}",host="{host}"}} {count}"#
        )
    };
    let expected: Vec<_> = expected.iter().map(line).collect();
    assert_eq!(lines(server, "rest_client_requests_total"), expected);
}

#[tokio::test]
async fn requests_are_counted_by_code_method_and_host() {
    let server = Server::start(vec![
        page(&["a"], "5", "more"),
        expired(),
        page(&["a"], "6", ""),
        Answer::json(201, pod("b")),
        Answer::json(409, json!({"kind": "Status", "reason": "AlreadyExists"})),
        Answer::Hangup,
    ])
    .await;
    list(&server.cluster).await.expect("it is read");
    let created = server.cluster.call(create("b")).await;
    created.expect("it is created");
    for request in [create("b"), delete()] {
        let refused = server.cluster.call(request).await;
        refused.expect_err("it is refused, or has no answer");
    }
    requests(
        &server,
        &[
            ("200", "GET", 2),
            ("201", "POST", 1),
            ("409", "POST", 1),
            ("410", "GET", 1),
            ("<error>", "DELETE", 1),
        ],
    );
    let host = server.host();
    let counts = lines(&server, "rest_client_request_duration_seconds_count");
    let count = |(verb, count): (&str, u32)| {
        format!(
            r#"rest_client_request_duration_seconds_count{{verb="{verb}",host="{host}"}} {count}"#
        )
    };
    let expected = [("DELETE", 1), ("GET", 3), ("POST", 2)].map(count);
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn watch_is_counted_and_not_timed() {
    let server = Server::start(vec![Answer::stream(Vec::new())]).await;
    let watch = server.cluster.watch(Kind::Pod, "5".into()).await;
    let mut events = watch.expect("it is accepted");
    assert_eq!(next(&mut events).await, None, "it ends");
    requests(&server, &[("200", "GET", 1)]);
    let timed = lines(&server, "rest_client_request_duration_seconds_count");
    assert_eq!(timed, Vec::<String>::new());
}

#[tokio::test]
async fn request_that_nobody_awaits_any_longer_has_no_status() {
    let server = Server::start(Vec::new()).await;
    drop(timeout(Duration::ZERO, server.cluster.uid()).await);
    requests(&server, &[("<error>", "GET", 1)]);
}

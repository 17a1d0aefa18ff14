//! Pods that answer as they should, and pods that do not.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};

use super::*;

/// Asks a server that sends this text whenever it is asked. Returns the cost, and the only request.
async fn asked(answer: &str) -> (Result<i32, String>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (mut request, mut count) = (vec![0; 4096], 0);
    let serving = async {
        loop {
            let (mut stream, _) = listener.accept().await.expect("it is asked");
            let length = stream.read(&mut request).await.expect("a request");
            request.truncate(length);
            count += 1;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    };
    let cost = tokio::select! {
        cost = get(address, "/busy?of=x") => cost.map_err(|error| innermost(&*error)),
        () = serving => unreachable!("it goes on"),
    };
    assert_eq!(count, 1, "it follows nothing, and tries nothing again");
    (cost, String::from_utf8(request).expect("a text"))
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn integers_are_costs() {
    for (text, cost) in [
        ("0", 0),
        (" 17\n", 17),
        ("-2147483648", i32::MIN),
        ("+5", 5),
    ] {
        assert_eq!(asked(&ok(text)).await.0, Ok(cost), "{text:?}");
    }
    assert_eq!(asked(&ok(&format!("{:>64}", 7))).await.0, Ok(7), "64 bytes");
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n1\r\n2\r\n0\r\n\r\n";
    let (cost, request) = asked(chunked).await;
    assert_eq!(cost, Ok(42));
    assert!(
        request.starts_with("GET /busy?of=x HTTP/1.1\r\n"),
        "{request}"
    );
    let headers = request.lines().skip(1).filter(|line| !line.is_empty());
    let names: Vec<_> = headers.filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["host"], "no credentials");
}

#[tokio::test]
async fn other_answers_are_none() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 1\r\n\r\n5";
    let no_integer = "the answer is no 32-bit integer";
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n5", "x".repeat(64 << 10));
    for (answer, why) in [
        (moved, "status 302"),
        ("HTTP/1.1 204 No Content\r\n\r\n", "status 204"),
        (
            "HTTP/1.1 500 Oh\r\nContent-Length: 1\r\n\r\n5",
            "status 500",
        ),
        (&ok(&format!("{:>65}", 7)), "length limit exceeded"),
        (&ok("2147483648"), no_integer),
        (&ok("1.5"), no_integer),
        (&ok(""), no_integer),
        (&ok("\u{661}"), no_integer),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n4",
            "end of file before message length reached",
        ),
        ("SSH-2.0-OpenSSH_9\r\n", "invalid HTTP version parsed"),
        (&endless, "message head is too large"),
    ] {
        assert_eq!(asked(answer).await.0, Err(why.to_owned()), "{answer:.40}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_left_when_the_time_is_over() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let cost = timeout(Duration::from_secs(2), get(address, "/busy")).await;
    assert!(cost.is_err(), "{cost:?}");
    drop(listener);
    let refused = get(address, "/busy").await.expect_err("nobody listens");
    let refused = innermost(&*refused);
    assert!(refused.contains("refused"), "{refused}");
}

#[test]
fn value_of_a_metric_is_rounded() {
    let of = |value: Value| {
        let item = json!({"describedObject": {"name": "a"}, "value": value});
        let other = json!({"describedObject": {"name": "b"}, "value": "9"});
        let list = json!({"items": [other, item]}).to_string();
        super::value(list.as_bytes(), "a").map_err(|error| error.to_string())
    };
    for (text, cost) in [
        ("17", 17),
        ("-3", -3),
        ("1500m", 2),
        ("-400m", 0),
        ("2k", 2_000),
        ("3Ki", 3_072),
        ("1e3", 1_000),
        ("0.4", 0),
        ("2147483647", i32::MAX),
        ("-2Gi", i32::MIN),
    ] {
        assert_eq!(of(text.into()), Ok(cost), "{text}");
    }
    for text in ["2Gi", "NaN", "inf", "", "m", "x", "5T", "1 "] {
        let why = format!("{text:?} is no 32-bit number");
        assert_eq!(of(text.into()), Err(why));
    }
    let none = Err("the metric has no value for the pod".to_owned());
    assert_eq!(of(Value::Null), none);
    assert_eq!(of(17.into()), none, "not as the API states it");
}

#[test]
fn address_is_that_of_the_pod_itself() {
    let of = |host_network: bool, ip: Option<&str>| {
        let pod = json!({
            "metadata": {"uid": "u"}, "spec": {"hostNetwork": host_network}, "status": {"podIP": ip},
        });
        address(pod.to_string().as_bytes(), "u").map_err(|error| error.to_string())
    };
    for address in ["10.1.2.3", "fd00::1", "203.0.113.9"] {
        assert_eq!(
            of(false, Some(address)),
            Ok(address.parse().expect("an address"))
        );
    }
    assert_eq!(
        of(true, Some("10.1.2.3")),
        Err("the pod has the network of its node".to_owned())
    );
    for none in [None, Some("")] {
        assert_eq!(
            of(false, none),
            Err("the pod has no address yet".to_owned())
        );
    }
    for wrong in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "169.254.169.254",
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "10.1.2.3:80",
        "pod.svc",
        "10.1.2.3/24",
    ] {
        let why = of(false, Some(wrong)).expect_err("no pod has it");
        assert!(why.contains("is no address of a pod"), "{wrong}: {why}");
    }
    let other = json!({"metadata": {"uid": "v"}, "status": {"podIP": "10.1.2.3"}}).to_string();
    let gone = address(other.as_bytes(), "u").expect_err("it is another pod");
    assert_eq!(gone.to_string(), "the pod is gone");
    assert!(address(b"{", "u").is_err());
}

//! Faults below the fields: methods, content types, framing, sizes.

use decree::v1;
use http::Method;
use prost::Message;
use tonic::Code;

use crate::{
    raw::{Answer, Call, message},
    refusal::assert_refusal,
    running::{Running, unhurried},
};

const DECIDE: &str = "/decree.v1.DecisionService/Decide";

/// A valid `Decide`.
fn good() -> Vec<u8> {
    let replica_set = Some(tests::objects::replica_set("web").build());
    v1::DecideRequest {
        replica_set,
        ..v1::DecideRequest::default()
    }
    .encode_to_vec()
}

/// A valid call of `Decide`.
fn valid() -> Call {
    Call::new(DECIDE, message(0, None, &good()))
}

async fn answer(call: Call) -> Answer {
    let server = Running::start().await;
    let answer = call.send(&server).await;
    assert!(valid().send(&server).await.is_ok());
    answer
}

async fn assert_refused(call: Call, code: Code, reason: &str) {
    let status = answer(call).await.status.expect("a status");
    assert_refusal(&status, code, reason);
}

async fn assert_malformed(body: Vec<u8>) {
    let call = Call::new(DECIDE, body);
    assert_refused(call, Code::InvalidArgument, "MALFORMED_MESSAGE").await;
}

// === impl Answer ===

impl Answer {
    fn is_ok(&self) -> bool {
        self.http == 200 && self.status.as_ref().map(tonic::Status::code) == Some(Code::Ok)
    }
}

#[tokio::test]
async fn unknown_method_and_service_are_unimplemented() {
    for path in ["/decree.v1.DecisionService/Nope", "/nobody.Here/Nope"] {
        let call = Call::new(path, message(0, None, &[]));
        assert_refused(call, Code::Unimplemented, "UNIMPLEMENTED").await;
    }
}

#[tokio::test]
async fn get_is_answered_with_405() {
    let call = Call {
        method: Method::GET,
        ..Call::new(DECIDE, vec![])
    };
    let answer = answer(call).await;
    assert_eq!(answer.http, 405);
    assert_eq!(answer.headers["allow"], "POST");
}

#[tokio::test]
async fn content_type_of_a_form_is_answered_with_415() {
    for kind in [
        "application/json",
        "text/plain",
        "application/grpc-web",
        "application/grpcx",
    ] {
        let call = valid().header("content-type", kind);
        assert_eq!(answer(call).await.http, 415, "{kind}");
    }
}

#[tokio::test]
async fn content_types_of_grpc_are_accepted() {
    for kind in [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc; charset=utf-8",
    ] {
        let call = valid().header("content-type", kind);
        assert!(answer(call).await.is_ok(), "{kind}");
    }
}

#[tokio::test]
async fn malformed_messages_are_invalid() {
    let truncated_field = [0x0a, 0xff, 0xff];
    let wrong_wire_type = [0x08, 1];
    let bad_utf8 = [0x0a, 3, 0x0a, 1, 0xff];
    for bytes in [&truncated_field[..], &wrong_wire_type, &bad_utf8] {
        assert_malformed(message(0, None, bytes)).await;
    }
}

#[tokio::test]
async fn message_shorter_than_it_says_is_invalid() {
    assert_malformed(message(0, Some(100), &[1, 2])).await;
}

#[tokio::test]
async fn call_without_a_message_is_invalid() {
    assert_malformed(vec![]).await;
}

#[tokio::test]
async fn compression_that_was_not_announced_is_invalid() {
    for flag in [1, 7] {
        assert_malformed(message(flag, None, &good())).await;
    }
}

#[tokio::test]
async fn compression_that_is_not_spoken_is_unimplemented() {
    for encoding in ["gzip", "zstd", "nonsense"] {
        let call = Call::new(DECIDE, message(1, None, &[1])).header("grpc-encoding", encoding);
        let answer = answer(call).await;
        assert_eq!(answer.headers["grpc-accept-encoding"], "identity");
        let status = answer.status.expect("a status");
        assert_refusal(&status, Code::Unimplemented, "UNIMPLEMENTED");
    }
}

#[tokio::test]
async fn message_that_claims_two_gibibytes_is_out_of_range() {
    let call = Call::new(DECIDE, message(0, Some(0x7fff_ffff), &[]));
    assert_refused(call, Code::OutOfRange, "MESSAGE_TOO_LARGE").await;
}

#[tokio::test]
async fn fields_of_a_later_version_are_ignored() {
    let unknown = [0x98, 0x3f, 1];
    let body = message(0, None, &[&good()[..], &unknown].concat());
    assert!(answer(Call::new(DECIDE, body)).await.is_ok());
}

#[tokio::test]
async fn second_message_of_a_unary_call_is_invalid() {
    assert_malformed(message(0, None, &good()).repeat(2)).await;
}

#[tokio::test]
async fn timeout_that_cannot_be_read_is_ignored() {
    let call = valid().header("grpc-timeout", "soon");
    assert!(answer(call).await.is_ok());
}

#[tokio::test]
async fn deadline_of_the_caller_is_told_with_its_reason() {
    let call = Call::new(DECIDE, message(0, Some(100), &[1])).endless();
    let call = call.header("grpc-timeout", "50m");
    assert_refused(call, Code::DeadlineExceeded, "DEADLINE_EXCEEDED").await;
}

#[tokio::test]
async fn body_that_does_not_end_is_given_up_at_the_servers_deadline() {
    let server = Running::start_with(decree_server::Config {
        deadline: std::time::Duration::from_millis(50),
        ..unhurried()
    })
    .await;
    let call = Call::new(DECIDE, message(0, Some(2_000_000), &[0; 1_000_000]));
    let status = call.endless().send(&server).await.status.expect("a status");
    assert_refusal(&status, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
}

#[tokio::test]
async fn metadata_beyond_16_kib_is_answered_with_431() {
    let call = valid().header("x-big", &"a".repeat(20 << 10));
    assert_eq!(answer(call).await.http, 431);
}

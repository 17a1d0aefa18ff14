//! The connection to the server as a task.

use std::io;

use super::*;

fn is_lost(status: &Status) -> bool {
    matches!(disconnect(status), Disconnect::Lost(_))
}

#[test]
fn broken_transport_is_told_from_a_refusal_by_its_source() {
    let broken = Status::from_error(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)));
    assert_eq!(broken.code(), Code::Unknown);
    assert!(is_lost(&broken));
    assert!(!is_lost(&Status::unknown("the server said so")));
}

#[test]
fn server_that_is_away_is_lost_and_one_that_refuses_is_not() {
    for (status, expected) in [
        (Status::unavailable("down"), true),
        (Status::aborted("expected frame 3, received frame 5"), true),
        (Status::cancelled(""), true),
        (Status::failed_precondition("epoch"), false),
        (Status::permission_denied("cluster"), false),
        (Status::unauthenticated("token"), false),
        (Status::invalid_argument("hello"), false),
        (Status::resource_exhausted("sessions"), false),
        (Status::unimplemented("no such service"), false),
    ] {
        assert_eq!(is_lost(&status), expected, "{status:?}");
    }
}

#[test]
fn wait_that_the_server_asks_for_is_read_from_the_details() {
    let wait = Duration::from_secs(9);
    let details = tonic_types::ErrorDetails::with_retry_info(Some(wait));
    let status = Status::with_error_details(Code::Unavailable, "overloaded", details);
    let Disconnect::Refused { retry_after, .. } = disconnect(&status) else {
        panic!("the server has said when")
    };
    assert_eq!(retry_after, Some(wait));
}

#[test]
fn agent_that_took_over_is_told_by_the_reason() {
    let details = tonic_types::ErrorDetails::with_error_info(
        SUPERSEDED,
        DOMAIN,
        std::collections::HashMap::<String, String>::new(),
    );
    let status = Status::with_error_details(Code::Aborted, "by agent-7", details);
    let expected = Disconnect::Superseded("Aborted: by agent-7".to_owned());
    assert_eq!(disconnect(&status), expected);
}

#[tokio::test]
async fn address_where_no_one_listens_is_lost() {
    let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let mut uplink = Uplink::new(Connector::local(&nobody.into()), None);
    uplink.command(LinkCommand::Connect);
    let news = uplink.next().await;
    assert!(
        matches!(news, News::Disconnected(Disconnect::Lost(_))),
        "{news:?}"
    );
}

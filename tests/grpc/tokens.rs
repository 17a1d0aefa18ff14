//! The expiry of a token, and a session that outlives its token.

use std::time::{SystemTime, UNIX_EPOCH};

use decree_api::v1;
use tests::issuer::{Issuer, LEEWAY};
use tonic::Code;

use crate::{
    access::Guarded,
    agent::{Agent, bearing, hello},
    refusal::{assert_field, assert_refusal},
    running::before_expiry,
};

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_secs()).expect("before year 292e9")
}

#[tokio::test]
async fn session_ends_when_its_token_expires_unless_it_is_renewed() {
    let guarded = Guarded::start().await;
    let Guarded { server, issuer, .. } = &guarded;
    let mut client = server.decisions().await;
    let begun = before_expiry(async |expiry| {
        let short = |subject| {
            let mut claims = Issuer::claims(subject, 0);
            claims["exp"] = (seconds(expiry) - LEEWAY).into();
            issuer.sign(&claims)
        };
        let (renewed, welcome) = Agent::open_as(server, &short("agent-a"), hello("a")).await?;
        let (left, _) = Agent::open_as(server, &short("agent-b"), hello("b")).await?;
        let of_none = bearing(
            v1::RenewSessionRequest::default(),
            Some(&issuer.token("agent-a")),
        );
        let refusal = client.renew_session(of_none).await;
        assert_field(
            &refusal.expect_err("of no session"),
            "session_id",
            "REQUIRED",
        );
        let renewal = v1::RenewSessionRequest {
            session_id: welcome.session_id,
        };
        let foreign = bearing(renewal.clone(), Some(&issuer.token("agent-b")));
        let foreign = client.renew_session(foreign).await;
        let foreign = foreign.expect_err("not its own");
        assert_refusal(&foreign, Code::NotFound, "SESSION_UNKNOWN");
        let fresh = bearing(renewal, Some(&issuer.token("agent-a")));
        let until = client.renew_session(fresh).await?.into_inner().expire_time;
        assert!(until.expect("a token expires").seconds > seconds(expiry));
        Ok::<_, tonic::Status>((renewed, left))
    });
    let ((mut renewed, mut left), _) = begun.await;
    let refusal = left.refusal().await;
    assert_refusal(&refusal, Code::Unauthenticated, "TOKEN_EXPIRED");
    renewed.snapshot(vec![], vec![]).await;
    renewed.prove_alive().await;
}

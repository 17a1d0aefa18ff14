//! Tokens: the valid ones, the expiry of a token, and a session that outlives its token.

use std::time::{SystemTime, UNIX_EPOCH};

use decree::v1;
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
async fn token_that_does_not_count_opens_no_session() {
    let guarded = Guarded::start().await;
    let Guarded { server, issuer, .. } = &guarded;
    for (case, token) in [
        ("expired", issuer.sign(&Issuer::claims("agent-a", -1))),
        (
            "HS256 by the public key",
            issuer.sign_by_public_key(&Issuer::claims("agent-a", 600)),
        ),
        ("no token at all", String::new()),
        ("too long", "x".repeat(9_000)),
    ] {
        let denied = Agent::open_as(server, &token, hello("a")).await;
        let denied = denied.err().expect(case);
        assert_refusal(&denied, Code::Unauthenticated, "TOKEN_INVALID");
        assert!(
            !denied.message().contains(&token) || token.is_empty(),
            "{case}"
        );
    }
    let missing = Agent::connect_as(server, None).await;
    let missing = missing.err().expect("no token");
    assert_refusal(&missing, Code::Unauthenticated, "CREDENTIAL_REQUIRED");
    assert!(guarded.open("agent-a", hello("a")).await.is_ok());
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

#[tokio::test]
async fn token_of_a_new_key_counts_as_soon_as_it_is_used() {
    let mut guarded = Guarded::start_with(|access| {
        // Only the token makes the server check.
        access.access_interval = std::time::Duration::from_mins(10);
    })
    .await;
    let old = guarded.issuer.token("agent-a");
    let opened = Agent::open_as(&guarded.server, &old, hello("a")).await;
    assert!(opened.is_ok());
    guarded.issuer.rotate();
    assert!(guarded.open("agent-a", hello("a")).await.is_ok());
    let denied = Agent::open_as(&guarded.server, &old, hello("a")).await;
    let denied = denied.err().expect("gone");
    assert_refusal(&denied, Code::Unauthenticated, "TOKEN_INVALID");
}

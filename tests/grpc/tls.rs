//! TLS: the peers that get in, the peers that do not, and the end of a connection. Each certificate has one fault.

use std::time::{Duration, SystemTime};

use decree_server::Config;
use rcgen::ExtendedKeyUsagePurpose;
use service::transport::{ClientArgs, ClientAuth, Connector, Endpoint, Metrics};
use tests::pki::{Authority, Files, Pair, Request};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_client::HealthClient};

use crate::{
    refusal::assert_refusal,
    running::{Running, before_expiry, soon, unhurried},
};

mod handshake;

/// Longer than any test takes.
const HOUR: Duration = Duration::from_hours(1);
const AGENT: &str = "spiffe://decree.test/agent";

/// A server with certificates, and their issuer.
struct Stand {
    server: Running,
    authority: Authority,
    /// The files of the server.
    files: Files,
}

impl Stand {
    async fn start() -> Self {
        Self::start_with(ClientAuth::Require, |_, _| {}).await
    }

    /// Starts a server; `prepare` may change its files before.
    async fn start_with(auth: ClientAuth, prepare: impl FnOnce(&Authority, &Files)) -> Self {
        let authority = Authority::new("CA of the tests");
        let files = Files::new(&authority.issue(&Request::server()), &authority.pem);
        prepare(&authority, &files);
        let server = Running::start_with(Config {
            tls: files.server(auth),
            ..unhurried()
        })
        .await;
        Self {
            server,
            authority,
            files,
        }
    }

    fn endpoint(&self) -> Endpoint {
        let url = format!("https://{}", self.server.addresses.grpc);
        url.parse().expect("a URL")
    }

    /// The files of a client with this certificate.
    fn client(&self, pair: &Pair) -> Files {
        Files::new(pair, &self.authority.pem)
    }

    /// Connects and makes a call, since TLS 1.3 tells a client only then that it is refused.
    async fn call(&self, args: &ClientArgs) -> Result<HealthClient<Channel>, String> {
        call(self.endpoint(), args).await
    }

    /// Connects with a certificate of the server's CA.
    async fn enter(&self, pair: &Pair) -> HealthClient<Channel> {
        let entered = self.call(&self.client(pair).client()).await;
        entered.expect("the certificate is right")
    }

    /// Asserts that the server refuses a client in its handshake, counts the reason, and gets no call.
    async fn refuses(&self, args: &ClientArgs, reason: &str) {
        let error = self.call(args).await.expect_err("it must not come in");
        self.counted(reason, &error).await;
        assert!(
            !self
                .server
                .metrics()
                .await
                .contains("grpc_server_started_total{")
        );
    }

    async fn counted(&self, reason: &str, error: &str) {
        let series = format!("decree_tls_handshake_failures_total{{reason=\"{reason}\"}}");
        self.server.until(&series, |count| count >= 1.0).await;
        assert!(!error.is_empty());
    }

    /// Waits until the server has refused this many changes of its files.
    async fn until_refused(&self, times: f64) {
        let series = "decree_tls_reload_errors_total";
        self.server.until(series, |count| count >= times).await;
    }

    /// Waits until the server has loaded this many changes of its files.
    async fn until_reloaded(&self, times: f64) {
        let series = "decree_tls_reloads_total";
        self.server.until(series, |count| count >= times).await;
    }

    /// Asserts that a client with these files gets in.
    async fn takes(&self, files: &Files, why: &str) -> HealthClient<Channel> {
        self.call(&files.client()).await.expect(why)
    }
}

fn connector(endpoint: Endpoint, args: &ClientArgs) -> Result<Connector, String> {
    let connector = Connector::new(endpoint, args, Metrics::default());
    connector.map_err(|error| service::failure::chain(&error))
}

async fn call(endpoint: Endpoint, args: &ClientArgs) -> Result<HealthClient<Channel>, String> {
    enter(connector(endpoint, args)?).await
}

async fn enter(connector: Connector) -> Result<HealthClient<Channel>, String> {
    let endpoint = tonic::transport::Endpoint::from(connector.endpoint().uri());
    let channel = soon(endpoint.connect_with_connector(connector)).await;
    let channel = channel.map_err(|error| service::failure::chain(&error))?;
    let mut client = HealthClient::new(channel);
    match soon(client.check(HealthCheckRequest::default())).await {
        Ok(_) => Ok(client),
        Err(status) => Err(service::failure::chain(&status)),
    }
}

/// Asserts that a client may continue.
async fn may_stay(client: &mut HealthClient<Channel>, why: &str) {
    let answer = soon(client.check(HealthCheckRequest::default())).await;
    answer.expect(why);
}

/// Opens a stream that lasts as long as the peer may stay.
async fn open(
    client: &mut HealthClient<Channel>,
) -> Result<Streaming<HealthCheckResponse>, Status> {
    let opened = soon(client.watch(HealthCheckRequest::default())).await;
    let mut stream = opened?.into_inner();
    soon(stream.message()).await?;
    Ok(stream)
}

/// Waits for the end of a stream.
async fn end(stream: &mut Streaming<HealthCheckResponse>) -> Status {
    loop {
        match soon(stream.message()).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended without a status"),
            Err(status) => return status,
        }
    }
}

fn agent() -> Request {
    Request::client(AGENT)
}

#[tokio::test]
async fn client_without_a_certificate_is_refused() {
    let stand = Stand::start().await;
    let files = stand.client(&stand.authority.issue(&agent()));
    let mut args = files.client();
    (args.files.tls_cert, args.files.tls_key) = (None, None);
    stand.refuses(&args, "no_certificate").await;
    let error = stand.call(&args).await.expect_err("still none");
    assert!(error.contains("--tls-cert"), "{error}");
}

#[tokio::test]
async fn client_without_a_certificate_gets_in_where_that_is_optional() {
    let stand = Stand::start_with(ClientAuth::Optional, |_, _| {}).await;
    let files = stand.client(&stand.authority.issue(&agent()));
    let mut args = files.client();
    (args.files.tls_cert, args.files.tls_key) = (None, None);
    stand.call(&args).await.expect("it may");
    let files = stand.client(&Authority::new("another").issue(&agent()));
    let wrong = stand.call(&files.client()).await;
    wrong.expect_err("a certificate that is shown must be right");
}

#[tokio::test]
async fn client_with_a_certificate_that_is_not_right_is_refused() {
    type Issue<'a> = &'a dyn Fn(&Authority) -> Pair;
    let now = SystemTime::now();
    let another = Authority::new("another");
    let for_servers = agent().usage(ExtendedKeyUsagePurpose::ServerAuth);
    let expired = agent().valid(now - 2 * HOUR, now - HOUR);
    let early = agent().valid(now + HOUR, now + 2 * HOUR);
    let rows: [(Issue<'_>, &str); 5] = [
        (&|_| another.issue(&agent()), "unknown_issuer"),
        (&|_| agent().self_signed(), "unknown_issuer"),
        (&|own| own.issue(&for_servers), "wrong_purpose"),
        (&|own| own.issue(&expired), "expired"),
        (&|own| own.issue(&early), "not_yet_valid"),
    ];
    for (issue, reason) in rows {
        let stand = Stand::start().await;
        let files = stand.client(&issue(&stand.authority));
        stand.refuses(&files.client(), reason).await;
    }
}

#[tokio::test]
async fn revocation_ends_open_streams_and_keeps_new_ones_out() {
    let later = SystemTime::now() + HOUR;
    let stand = Stand::start_with(ClientAuth::Require, |authority, files| {
        files.write("ca.crl", &authority.revoke(&[], later));
    })
    .await;
    let (bad, good) = (
        stand.authority.issue(&agent()),
        stand.authority.issue(&agent()),
    );
    let mut good = stand.enter(&good).await;
    let mut stays = open(&mut good).await.expect("it opens");
    let mut client = stand.enter(&bad).await;
    let mut stream = open(&mut client).await.expect("it opens");
    let list = stand.authority.revoke(&[&bad], later);
    stand.files.write("ca.crl", &list);
    let status = end(&mut stream).await;
    assert_refusal(&status, Code::Unauthenticated, "CERTIFICATE_REVOKED");
    let files = stand.client(&bad);
    let connector = connector(stand.endpoint(), &files.client()).expect("the files are right");
    let error = enter(connector.clone()).await.expect_err("it is revoked");
    stand.counted("revoked", &error).await;
    assert!(error.contains("revoked"), "{error}");
    let renewed = stand.authority.issue(&agent());
    files.write("tls.crt", &renewed.cert);
    files.write("tls.key", &renewed.key);
    // The client reads its files again.
    soon(async { while enter(connector.clone()).await.is_err() {} }).await;
    may_stay(&mut good, "another may stay").await;
    stand.server.begin_stop();
    while let Ok(Some(_)) = soon(stays.message()).await {}
}

#[tokio::test]
async fn revocation_list_counts_while_another_file_is_bad() {
    let later = SystemTime::now() + HOUR;
    for (file, text) in [
        ("tls.crt", "no PEM"),
        ("tls.key", "-----BEGIN PRIVATE KEY-----\n"),
        ("ca.crt", ""),
    ] {
        let stand = Stand::start_with(ClientAuth::Require, |authority, files| {
            files.write("ca.crl", &authority.revoke(&[], later));
        })
        .await;
        let pair = stand.authority.issue(&agent());
        let mut client = stand.enter(&pair).await;
        let mut stream = open(&mut client).await.expect("it opens");
        stand.files.write(file, text);
        let errors = "decree_tls_reload_errors_total";
        stand.server.until(errors, |count| count > 0.5).await;
        let list = stand.authority.revoke(&[&pair], later);
        stand.files.write("ca.crl", &list);
        let status = end(&mut stream).await;
        assert_refusal(&status, Code::Unauthenticated, "CERTIFICATE_REVOKED");
    }
}

#[tokio::test]
async fn outdated_revocation_list_keeps_new_clients_out_and_ends_none() {
    let now = SystemTime::now();
    let stand = Stand::start_with(ClientAuth::Require, |authority, files| {
        files.write("ca.crl", &authority.revoke(&[], now + HOUR));
    })
    .await;
    let pair = stand.authority.issue(&agent());
    let mut client = stand.enter(&pair).await;
    let list = stand.authority.revoke(&[], now - HOUR / 2);
    stand.files.write("ca.crl", &list);
    stand.until_reloaded(1.0).await;
    let error = stand
        .call(&stand.client(&pair).client())
        .await
        .expect_err("nobody knows");
    stand.counted("revocation_unknown", &error).await;
    may_stay(&mut client, "it may stay").await;
}

#[tokio::test]
async fn expiry_ends_open_streams() {
    let stand = Stand::start().await;
    let entered = before_expiry(async |expiry| {
        let pair = agent().valid(expiry - HOUR, expiry);
        let files = stand.client(&stand.authority.issue(&pair));
        let mut client = stand.call(&files.client()).await?;
        let stream = open(&mut client).await.map_err(|it| it.to_string())?;
        Ok::<_, String>((client, stream))
    });
    let ((mut client, mut stream), expiry) = entered.await;
    let status = end(&mut stream).await;
    assert_refusal(&status, Code::Unauthenticated, "CERTIFICATE_EXPIRED");
    // A certificate has a resolution of a second.
    let is_over = SystemTime::now() + Duration::from_secs(1) >= expiry;
    assert!(is_over, "not before its time");
    let again = soon(client.check(HealthCheckRequest::default())).await;
    again.expect_err("the connection is of no use any more");
}

#[tokio::test]
async fn expiry_of_the_servers_certificate_ends_no_stream_and_keeps_new_clients_away() {
    let entered = before_expiry(async |expiry| {
        let stand = Stand::start_with(ClientAuth::Require, |authority, files| {
            let pair = authority.issue(&Request::server().valid(expiry - HOUR, expiry));
            files.write("tls.crt", &pair.cert);
            files.write("tls.key", &pair.key);
        })
        .await;
        let files = stand.client(&stand.authority.issue(&agent()));
        let client = stand.call(&files.client()).await?;
        Ok::<_, String>((stand, files, client))
    });
    let ((stand, files, mut client), _) = entered.await;
    let mut stream = open(&mut client).await.expect("it opens");
    let error = soon(async {
        loop {
            if let Err(error) = stand.call(&files.client()).await {
                return error;
            }
        }
    })
    .await;
    assert!(error.contains("expired"), "{error}");
    may_stay(&mut client, "the connection was proved before").await;
    stand.server.begin_stop();
    let end = soon(stream.message()).await;
    assert!(
        !matches!(&end, Err(status) if status.code() == Code::Unauthenticated),
        "{end:?}"
    );
}

#[tokio::test]
async fn renewed_certificate_is_used_once_it_is_whole_and_drops_no_stream() {
    let stand = Stand::start().await;
    let files = stand.client(&stand.authority.issue(&agent()));
    let mut client = stand.takes(&files, "it is right").await;
    let mut stream = open(&mut client).await.expect("it opens");
    let now = SystemTime::now();
    // The shorter lifetime of the new certificate identifies it.
    let expires = now + HOUR / 2;
    let renewed = stand
        .authority
        .issue(&Request::server().valid(now - HOUR, expires));
    stand.files.write("tls.crt", &renewed.cert);
    stand.until_refused(1.0).await;
    stand.takes(&files, "the old pair is in use").await;
    let half = "-----BEGIN PRIVATE KEY-----\n";
    stand.files.write("tls.key", half);
    stand.until_refused(2.0).await;
    stand.takes(&files, "the old pair is in use").await;
    stand.files.write("tls.key", &renewed.key);
    let series = "decree_tls_expiry_timestamp_seconds{file=\"cert\"}";
    let seconds = expires
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970");
    let seconds = seconds.as_secs_f64();
    stand.server.until(series, |expiry| expiry <= seconds).await;
    stand.takes(&files, "the new one is right too").await;
    may_stay(&mut client, "the old connection stays").await;
    stand.server.begin_stop();
    let last = soon(stream.message()).await.expect("nothing ended it");
    assert!(last.is_some(), "the stream hears of the drain");
}

#[tokio::test]
async fn change_of_the_ca_with_overlap_drops_no_stream() {
    let stand = Stand::start().await;
    let old = stand.client(&stand.authority.issue(&agent()));
    let mut before = stand.takes(&old, "it is right").await;
    let mut stream = open(&mut before).await.expect("it opens");
    let next = Authority::new("the next CA");
    let both = format!("{}{}", stand.authority.pem, next.pem);
    stand.files.write("ca.crt", &both);
    old.write("ca.crt", &both);
    stand.until_reloaded(1.0).await;
    let new = Files::new(&next.issue(&agent()), &both);
    stand.takes(&new, "the next CA is trusted already").await;
    stand.takes(&old, "the old one still is").await;
    may_stay(&mut before, "nothing was dropped").await;
    stand.files.write("ca.crt", &next.pem);
    let status = end(&mut stream).await;
    assert_refusal(&status, Code::Unauthenticated, "CERTIFICATE_UNTRUSTED");
    stand.takes(&new, "only the next one is trusted").await;
}

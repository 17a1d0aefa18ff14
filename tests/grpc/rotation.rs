//! Certificates that are renewed repeatedly, on both sides, under sessions that stay open.
//!
//! `DECREE_ROTATIONS=600` renews once a second for ten minutes and prints the figures of docs/internals/benchmarks.md. By default, the
//! test renews a few times, as fast as the files are read.

use std::{
    env,
    time::{Duration, SystemTime},
};

use decree::v1::decision_service_client::DecisionServiceClient;
use decree_server::Config;
use service::transport::{ClientAuth, Connector, Metrics};
use tests::pki::{Authority, Files, Request};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    agent::{Agent, hello},
    running::{Running, soon, unhurried},
};

/// The number of sessions that stay open.
const SESSIONS: u8 = 4;
/// The default number of renewals.
const ROTATIONS: u32 = 5;
const RELOADS: &str = "decree_tls_reloads_total";

/// A server and its clients, whose certificates are renewed.
struct Rotation {
    server: Running,
    authority: Authority,
    files: Files,
    clients: Files,
    connector: Connector,
    /// The expiry of the revocation lists.
    later: SystemTime,
}

impl Rotation {
    async fn start() -> Self {
        let authority = Authority::new("CA of the tests");
        let later = SystemTime::now() + Duration::from_hours(24);
        let files = Files::new(&authority.issue(&Request::server()), &authority.pem);
        files.write("ca.crl", &authority.revoke(&[], later));
        let server = Running::start_with(Config {
            tls: files.server(ClientAuth::Require),
            ..unhurried()
        })
        .await;
        let clients = Files::new(&authority.issue(&client()), &authority.pem);
        let url = format!("https://{}", server.addresses.grpc);
        let url = url.parse().expect("a URL");
        let connector = Connector::new(url, &clients.client(), Metrics::default());
        Self {
            server,
            authority,
            files,
            clients,
            connector: connector.expect("the files are right"),
            later,
        }
    }

    async fn session(&self, cluster: &str) -> Agent {
        let endpoint = tonic::transport::Endpoint::from(self.connector.endpoint().uri());
        let channel = soon(endpoint.connect_with_connector(self.connector.clone())).await;
        let client = DecisionServiceClient::new(channel.expect("it gets in"));
        let (mut agent, _) = Agent::connect_by(client).await.greet(hello(cluster)).await;
        agent.snapshot(vec![], vec![]).await;
        agent
    }

    /// Writes new certificates for both sides and a new list, and waits until the server uses them.
    async fn renew(&self) {
        let before = self.server.metric(RELOADS).await;
        for (files, request) in [(&self.files, Request::server()), (&self.clients, client())] {
            let pair = self.authority.issue(&request);
            files.write("tls.crt", &pair.cert);
            files.write("tls.key", &pair.key);
        }
        let list = self.authority.revoke(&[], self.later);
        self.files.write("ca.crl", &list);
        self.server.until(RELOADS, |count| count > before).await;
    }
}

fn client() -> Request {
    Request::client("spiffe://decree.test/agent")
}

#[tokio::test]
async fn renewals_each_second_drop_no_session() {
    let asked = env::var("DECREE_ROTATIONS").ok();
    let asked: Option<u32> = asked.map(|it| it.parse().expect("DECREE_ROTATIONS is a number"));
    let rotation = Rotation::start().await;
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        sessions.push(rotation.session(&format!("c{number}")).await);
    }
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let rotations = asked.unwrap_or(ROTATIONS);
    for round in 0..rotations {
        if asked.is_some() {
            seconds.tick().await;
        }
        rotation.renew().await;
        // New peers get in meanwhile, and open sessions are served.
        rotation.session("newcomer").await.prove_alive().await;
        for session in &mut sessions {
            session.prove_alive_by(&format!("round-{round}")).await;
        }
    }
    let reloads = rotation.server.metric(RELOADS).await;
    let torn = rotation
        .server
        .metric("decree_tls_reload_errors_total")
        .await;
    eprintln!(
        "{rotations} renewals: {SESSIONS} sessions of {SESSIONS} kept, {rotations} opened meanwhile, {reloads} reloads, {torn} half-written pairs left aside"
    );
}

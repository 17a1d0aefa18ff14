//! Connections to the API server: TCP that notices when the other end is gone, through a proxy if there is one, and TLS.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{
            self,
            connect::{
                Connect, HttpConnector,
                proxy::{SocksV5, Tunnel},
            },
        },
        proxy::matcher::Intercept,
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{Config, client::ConfigExt as _};
use tower::{BoxError, ServiceBuilder, util::BoxCloneSyncService};

use super::{
    error::{ConnectError, NO_HEADER, of_client},
    proxy,
};
use crate::body::RequestBody;

/// The longest time to open a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The interval of HTTP/2 and TCP checks that the other end is alive.
const PING_EVERY: Duration = Duration::from_secs(15);
/// How long the answer to a check may take. A check with its interval takes less than 30 s.
const PING_MAX: Duration = Duration::from_secs(10);
/// The window of a stream: a page of a list fits without waiting for the other side.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
/// The window of the connection: several times a stream's, so that a slow reader of a watch stops no call.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Sends requests to the API server. Clones share their connection.
pub(crate) type Client =
    BoxCloneSyncService<Request<RequestBody>, Response<ResponseBody>, BoxError>;
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, kube::Error>;

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread, now, would be caught: it says that a token is no header, and must not end the process.
pub fn catches_panic() -> bool {
    CATCHES.get()
}

/// Makes this number of clients with the same credentials. Each connects when it is used first.
pub(crate) fn clients(config: &Config, count: usize) -> Result<Vec<Client>, ConnectError> {
    let Some(url) = &config.proxy_url else {
        return clients_over(tcp(), config, count);
    };
    let intercept = proxy::at(url);
    let intercept = intercept.map_err(|why| ConnectError::new(format!("proxy-url: {why}")))?;
    let proxy = intercept.uri().clone();
    match url.scheme_str() {
        Some("http") => clients_over(tunnel(proxy, tcp(), &intercept), config, count),
        Some("https") => {
            // As in Go, the trusted certificates are those of the cluster.
            let to_proxy = HttpsConnectorBuilder::new()
                .with_tls_config(config.rustls_client_config().map_err(refused)?)
                .https_only()
                .enable_http1()
                .wrap_connector(tcp());
            clients_over(tunnel(proxy, to_proxy, &intercept), config, count)
        }
        Some(_) | None => {
            let mut socks = SocksV5::new(proxy, tcp());
            if let Some((user, password)) = intercept.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            clients_over(socks, config, count)
        }
    }
}

/// Makes clients over a connector to the API server, which TLS wraps.
fn clients_over<C>(connector: C, config: &Config, count: usize) -> Result<Vec<Client>, ConnectError>
where
    HttpsConnector<C>: Connect + Clone + Send + Sync + 'static,
{
    let connector = tls(config, connector)?;
    // kube panics if a token from the kubeconfig or from a plugin is no header.
    CATCHES.set(true);
    let authentication = panic::catch_unwind(AssertUnwindSafe(|| config.auth_layer()));
    CATCHES.set(false);
    let authentication = authentication.map_err(|_| ConnectError::client(NO_HEADER))?;
    let authentication = authentication.map_err(refused)?;
    let headers = config.extra_headers_layer().map_err(refused)?;
    let client = || {
        let layers = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(authentication.as_ref())
            .layer(&headers)
            .map_err(BoxError::from)
            .map_response(boxed);
        Client::new(layers.service(connection(connector.clone())))
    };
    Ok((0..count).map(|_| client()).collect())
}

fn boxed<B>(response: Response<B>) -> Response<ResponseBody>
where
    B: BodyExt<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let broken = |error: B::Error| kube::Error::Service(error.into());
    response.map(|body| body.map_err(broken).boxed_unsync())
}

/// A client whose connection opens with the first call.
pub(super) fn connection<C>(connector: C) -> legacy::Client<C, RequestBody>
where
    C: Connect + Clone,
{
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_MAX)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder.build(connector)
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_MAX));
    tcp.set_keepalive(Some(PING_EVERY));
    tcp.set_keepalive_interval(Some(PING_MAX / 2));
    tcp.set_keepalive_retries(Some(2));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(PING_EVERY + PING_MAX));
    tcp
}

fn tunnel<C>(proxy: Uri, connector: C, intercept: &Intercept) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy, connector);
    match intercept.basic_auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the errors of calls are values"
)]
fn refused(error: kube::Error) -> ConnectError {
    ConnectError::client(&of_client(&error))
}

fn tls<C>(config: &Config, connector: C) -> Result<HttpsConnector<C>, ConnectError> {
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config().map_err(refused)?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|_| {
            ConnectError::new(format!(
                "kubeconfig: tls-server-name {name:?} is not a name"
            ))
        })?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

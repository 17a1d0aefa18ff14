//! From a kubeconfig, or from the service account of a pod, to a client. Authentication and TLS are from the kube crate; the connections
//! are made here.
//!
//! kube's own client speaks HTTP/1, with a connection for each call in flight. It notices a half-open connection when the next call times
//! out, sends a refused POST again, and passes every call through a task. Here a client has one HTTP/2 connection. Pings tell whether its
//! other end is alive, nothing is sent twice, and a call goes straight to its connection.
//!
//! An API server allows 100 requests in flight on a connection, and a further request waits without notice. So requests that must not wait
//! for each other have separate clients: calls, Leases, and reads of the cluster.

mod connector;
mod error;
mod proxy;

use std::{env, ffi::OsString, fmt, fs, path::PathBuf};

use http::{HeaderValue, Uri};
use kube::{
    Config,
    config::{Context, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

pub use self::connector::catches_panic;
pub(crate) use self::connector::{Client, ResponseBody, clients};
pub use self::error::ConnectError;
pub(crate) use self::error::of_renewal;
use self::{
    error::{EMPTY, NOWHERE, of_kubeconfig},
    proxy::Variables,
};

/// The agent in audit logs and metrics of the API server.
const USER_AGENT: &str = concat!("decree-agent/", env!("CARGO_PKG_VERSION"));

/// The source of the API server's address and of the credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialSource {
    /// A kubeconfig. Without it, the sources are `KUBECONFIG`, the service account of the pod, and `~/.kube/config`, in this order.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig in place of its current context.
    pub context: Option<String>,
    /// The user to impersonate.
    pub impersonate: Option<String>,
}

/// The identity of the cluster, as far as the credentials tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The URL of its API server.
    pub api_server: String,
    /// The context of the kubeconfig; `None` in a pod.
    pub context: Option<String>,
    /// The user of the context; `None` in a pod.
    pub user: Option<String>,
    /// The namespace of the context or of the pod.
    pub namespace: String,
    /// The source of the credentials.
    pub credentials: String,
}

enum Origin {
    /// A file named by a flag.
    Named(PathBuf),
    /// The files in `KUBECONFIG`.
    Variable(OsString),
    /// The service account of this pod.
    Pod,
    /// `~/.kube/config`.
    Home(PathBuf),
}

impl CredentialSource {
    /// Reads the credentials, and the identity of their cluster.
    pub(crate) async fn config(&self) -> Result<(Config, Target), ConnectError> {
        let origin = self.origin()?;
        let (mut config, context, user, proxy) = match &origin {
            Origin::Pod => {
                let config = Config::incluster();
                let unusable = "the credentials of this pod cannot be used";
                let config = config.map_err(|error| ConnectError::because(unusable, error))?;
                (config, None, None, None)
            }
            Origin::Named(_) | Origin::Variable(_) | Origin::Home(_) => {
                let refused = |error: KubeconfigError| {
                    ConnectError::kubeconfig(&origin, &of_kubeconfig(&error))
                };
                let kubeconfig = origin.read().map_err(refused)?;
                let chosen = kubeconfig.current_context.as_deref();
                let names_none = kubeconfig.clusters.is_empty() && kubeconfig.contexts.is_empty();
                if names_none && chosen.is_none_or(str::is_empty) {
                    return Err(ConnectError::kubeconfig(&origin, EMPTY));
                }
                let context = self.context.clone();
                let options = KubeConfigOptions {
                    context: context.clone(),
                    ..KubeConfigOptions::default()
                };
                let context = context.or_else(|| kubeconfig.current_context.clone());
                let user = user(&kubeconfig, context.as_deref());
                let proxy = proxy_url(&kubeconfig, context.as_deref());
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                (config.map_err(refused)?, context, user, proxy)
            }
        };
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
        }
        check_url(&config.cluster_url)?;
        read_token(&mut config, &origin)?;
        identify(&mut config);
        // kube applies the variable to every host, and over the setting of the kubeconfig.
        let variables = Variables::read();
        config.proxy_url = proxy::find(proxy.as_deref(), &config.cluster_url, &variables)?;
        let target = Target {
            api_server: config.cluster_url.to_string(),
            context,
            user,
            namespace: config.default_namespace.clone(),
            credentials: origin.to_string(),
        };
        Ok((config, target))
    }

    /// The files of the credentials, as far as they are known.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let Ok(origin) = self.origin() else {
            return Vec::new();
        };
        let mut files = match &origin {
            Origin::Named(file) | Origin::Home(file) => vec![file.clone()],
            Origin::Variable(files) => env::split_paths(files).collect(),
            // kube reads the token of a pod again when it changes, and also the authority.
            Origin::Pod => return Vec::new(),
        };
        let Ok(kubeconfig) = origin.read() else {
            return files;
        };
        let users = kubeconfig.auth_infos.into_iter();
        for user in users.filter_map(|it| it.auth_info) {
            let named = [user.client_certificate, user.client_key, user.token_file];
            files.extend(named.into_iter().flatten().map(PathBuf::from));
        }
        let clusters = kubeconfig.clusters.into_iter();
        let authorities = clusters.filter_map(|it| it.cluster?.certificate_authority);
        files.extend(authorities.map(PathBuf::from));
        files
    }

    fn origin(&self) -> Result<Origin, ConnectError> {
        let named = self.kubeconfig.clone().map(Origin::Named);
        let found = || match self.context {
            // The service account of a pod has no contexts.
            Some(_) => variable().or_else(home),
            None => found(),
        };
        let origin = named.or_else(found);
        origin.ok_or_else(|| ConnectError::new(NOWHERE))
    }
}

impl Origin {
    fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match self {
            Self::Named(file) | Self::Home(file) => Kubeconfig::read_from(file),
            Self::Variable(_) | Self::Pod => Kubeconfig::read(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(file) => write!(formatter, "--kubeconfig {}", file.display()),
            Self::Variable(files) => write!(formatter, "KUBECONFIG={}", files.display()),
            Self::Pod => formatter.write_str("the service account of this pod"),
            Self::Home(file) => write!(formatter, "{}", file.display()),
        }
    }
}

/// Returns whether there are credentials without a flag: from `KUBECONFIG`, a pod, or `~/.kube/config`.
pub fn is_configured() -> bool {
    found().is_some()
}

fn found() -> Option<Origin> {
    variable()
        .or_else(|| in_pod().then_some(Origin::Pod))
        .or_else(home)
}

fn variable() -> Option<Origin> {
    let files = env::var_os("KUBECONFIG").filter(|files| !files.is_empty());
    files.map(Origin::Variable)
}

fn home() -> Option<Origin> {
    let file = env::home_dir()?.join(".kube/config");
    file.exists().then_some(Origin::Home(file))
}

fn context<'a>(kubeconfig: &'a Kubeconfig, name: Option<&str>) -> Option<&'a Context> {
    let mut contexts = kubeconfig.contexts.iter();
    let named = contexts.find(|it| Some(it.name.as_str()) == name)?;
    named.context.as_ref()
}

fn user(kubeconfig: &Kubeconfig, name: Option<&str>) -> Option<String> {
    context(kubeconfig, name)?.user.clone()
}

fn proxy_url(kubeconfig: &Kubeconfig, name: Option<&str>) -> Option<String> {
    let cluster = &context(kubeconfig, name)?.cluster;
    let cluster = kubeconfig.clusters.iter().find(|it| it.name == *cluster)?;
    cluster.cluster.as_ref()?.proxy_url.clone()
}

/// Refuses a URL with a user or a password: an API server would not read them, and logs and proxies would.
fn check_url(url: &Uri) -> Result<(), ConnectError> {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err(ConnectError::new(
            "kubeconfig: clusters[].cluster.server has a user or a password; write them as username and password of users[].user",
        ));
    }
    Ok(())
}

/// Reads the token file of a kubeconfig, which has priority over a token, without its line end. kube reads the token file of a pod.
fn read_token(config: &mut Config, origin: &Origin) -> Result<(), ConnectError> {
    if matches!(origin, Origin::Pod) {
        return Ok(());
    }
    if let Some(file) = config.auth_info.token_file.take() {
        let token = fs::read_to_string(&file);
        let name = format!("token file {file}");
        let token = token.map_err(|error| ConnectError::because(name, error))?;
        config.auth_info.token = Some(token.trim().to_owned().into());
    }
    Ok(())
}

pub(crate) fn identify(config: &mut Config) {
    let agent = HeaderValue::from_static(USER_AGENT);
    config.headers.push((http::header::USER_AGENT, agent));
}

/// Returns whether this process runs in a pod with a service account.
pub fn in_pod() -> bool {
    const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    env::var_os("KUBERNETES_SERVICE_HOST").is_some() && std::path::Path::new(TOKEN).exists()
}

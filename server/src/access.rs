//! Access control: credentials of connections and calls, a check before every method, and the end of streams that are not allowed any
//! more.
//!
//! [`Access::guard`] stands before all services: it identifies the caller and puts a [`Caller`] into the request, or refuses the call. Handlers ask
//! the [`Caller`] which clusters it may see. A Hello must be admitted before its session opens ([`Access::admit`]). [`Access::watch`]
//! reads the policy and the keys again when they change, and ends the streams that are not allowed any more.

use std::{net::IpAddr, path::Path, sync::Arc};

use decree_api::v1;
use http::{Extensions, HeaderMap, Request, header};
use parking_lot::Mutex;
use server_access::{
    Admission, Authority, Denial, Identity, NamedCluster, Policy,
    method::{self, Need},
    token::TokenError,
};
use service::Fault;
use tonic::body::Body;

pub(crate) use self::{
    args::AccessArgs,
    caller::{Caller, proven},
    streams::OpenStream,
};
use self::{
    streams::{StreamEntry, Streams},
    tokens::Tokens,
    watched_file::WatchedFile,
};
use crate::{
    capacity::{EndSignal, SlotHandle},
    clock,
    error::Refusal,
    metrics::Metrics,
    peer::ConnectionPeer,
};

pub(crate) mod args;
mod caller;
mod key_server;
mod streams;
mod tokens;
mod watch;
mod watched_file;

const BEARER: &str = "Bearer ";

#[derive(Debug)]
pub(crate) struct Access {
    authority: Mutex<Authority>,
    policy: Option<WatchedFile<Policy>>,
    tokens: Option<Arc<Tokens>>,
    streams: Arc<Streams>,
    args: AccessArgs,
    metrics: Metrics,
}

impl Access {
    /// Reads the policy and the keys.
    ///
    /// # Errors
    /// If a file is invalid, or flags contradict each other.
    pub(crate) fn new(args: &AccessArgs, metrics: Metrics) -> Result<Self, Fault> {
        let policy = args.policy.as_deref().map(open_policy).transpose()?;
        let (policy, parsed) = policy.unzip();
        let tokens = Tokens::new(args)?.map(Arc::new);
        let authority = Authority::new(parsed, tokens.is_some());
        Ok(Self {
            authority: Mutex::new(authority),
            policy,
            tokens,
            streams: Arc::default(),
            args: args.clone(),
            metrics,
        })
    }

    /// Authorizes a call, and puts its [`Caller`] into the request.
    pub(crate) async fn guard(&self, request: &mut Request<Body>) -> Result<(), Refusal> {
        let path = request.uri().path();
        let authorized = self.authorize(path, request.headers(), request.extensions());
        let caller = authorized.await?;
        if caller.is_proven() {
            ConnectionPeer::of(request.extensions()).prove(&caller.identity);
            if let Some(slot) = request.extensions().get::<SlotHandle>() {
                slot.prove(&caller.identity);
            }
        }
        request.extensions_mut().insert(caller);
        Ok(())
    }

    /// Identifies the caller of a method and checks the policy.
    ///
    /// # Errors
    /// If the policy does not allow the call. The refusal is counted and logged.
    pub(crate) async fn authorize(
        &self,
        path: &str,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Caller, Refusal> {
        let peer = ConnectionPeer::of(extensions);
        let address = peer.address;
        let need = method::find(path).map(|method| method.need);
        if need == Some(Need::Health) {
            return Ok(Caller::nobody(address));
        }
        let identified = self.identify(&peer, headers).await;
        let authorized = identified.and_then(|(identity, expires)| {
            let permissions = self.authority.lock().check_call(&identity, path, need)?;
            Ok((identity, permissions, expires))
        });
        match authorized {
            Ok((identity, permissions, expires)) => {
                Ok(Caller::new(identity, address, permissions, expires))
            }
            Err(Denial::CredentialRequired) if peer.is_console && self.tokens.is_none() => {
                Err(self.refuse(address, path, Denial::ConsoleNotGranted))
            }
            Err(denial) => Err(self.refuse(address, path, denial)),
        }
    }

    /// The token decides if there is one and this server accepts tokens, otherwise the certificate or socket of the connection.
    async fn identify(
        &self,
        peer: &ConnectionPeer,
        headers: &HeaderMap,
    ) -> Result<(Identity, Option<i64>), Denial> {
        if let (Some(tokens), Some(header)) = (&self.tokens, headers.get(header::AUTHORIZATION)) {
            let token = header.to_str().ok();
            let token = token.and_then(|text| text.strip_prefix(BEARER));
            let token = token.ok_or(Denial::TokenInvalid(TokenError::Malformed))?;
            let claims = tokens.verify(token).await.map_err(Denial::TokenInvalid)?;
            return Ok((Identity::Subject(claims.subject), Some(claims.expires)));
        }
        let identity = if peer.is_console {
            Identity::Console
        } else {
            caller::identity(&peer.proved.credential)?
        };
        Ok((identity, None))
    }

    /// Admits the session of a Hello. If the policy names the cluster's name for others, the name is removed from the Hello.
    ///
    /// # Errors
    /// If the caller is not allowed to serve the cluster.
    pub(crate) fn admit(
        &self,
        caller: &Caller,
        hello: &mut v1::Hello,
    ) -> Result<Admission, Refusal> {
        let cluster = NamedCluster {
            uid: &hello.cluster_uid,
            name: &hello.cluster_name,
            shard: &hello.shard,
        };
        let admission = self.authority.lock().admit(&caller.identity, cluster);
        let admission = admission.map_err(|denial| self.refuse(caller.address, "Hello", denial))?;
        if !admission.is_name_granted && !hello.cluster_name.is_empty() {
            let (name, uid) = (&hello.cluster_name, &hello.cluster_uid);
            let peer = caller.peer();
            tracing::warn!(peer, uid, name, "name of another's cluster not used");
            hello.cluster_name.clear();
        }
        Ok(admission)
    }

    /// Tracks an admitted session, which ends when its agent loses the permission.
    pub(crate) fn open_session(
        &self,
        caller: Caller,
        admission: Admission,
        session_id: &str,
        end_signal: &EndSignal,
    ) -> OpenStream {
        self.streams.open(StreamEntry {
            caller,
            session: Some((session_id.to_owned(), admission)),
            end_signal: end_signal.clone(),
        })
    }

    /// Tracks a stream other than a session, which the signal ends when its caller loses the permission.
    pub(crate) fn open_watch(&self, caller: &Caller) -> (OpenStream, EndSignal) {
        let end_signal = EndSignal::default();
        let stream = StreamEntry {
            caller: caller.clone(),
            session: None,
            end_signal: end_signal.clone(),
        };
        (self.streams.open(stream), end_signal)
    }

    /// The identity as a policy writes it.
    pub(crate) fn identity_of(&self, session_id: &str) -> Option<String> {
        self.streams.identity_of(session_id)
    }

    /// Extends a session until the credential of this call expires. Returns the expiry in seconds since 1970.
    ///
    /// # Errors
    /// If the session is not one of the caller's.
    pub(crate) fn renew(&self, caller: &Caller, session_id: &str) -> Result<Option<i64>, Refusal> {
        if self.streams.renew(caller, session_id) {
            Ok(caller.expires)
        } else {
            Err(Refusal::SessionUnknown(session_id.to_owned()))
        }
    }

    /// Ends the denied streams, and gives the others their new permissions.
    fn end_the_denied(&self) {
        let now = clock::seconds();
        let authority = self.authority.lock();
        let denied = self.streams.check(|caller, admission| {
            let identity = &caller.identity;
            if caller.expires.is_some_and(|expires| expires <= now) {
                return Err(Denial::TokenExpired);
            }
            let permissions = match admission {
                Some(admission) => authority.recheck(identity, admission),
                None => authority.check_call(identity, "WatchDecisions", Some(Need::View)),
            };
            caller.set_permissions(permissions?);
            Ok(())
        });
        drop(authority);
        for (caller, end_signal, denial) in denied {
            end_signal.send(self.refuse(caller.address, "open stream", denial));
        }
    }

    fn refuse(&self, peer: IpAddr, method: &str, denial: Denial) -> Refusal {
        let reason = denial.reason();
        let denials = &self.metrics.denials;
        denials.get_or_create(&[("reason", reason)]).inc();
        tracing::warn!(%peer, method, reason, why = %denial, "denied");
        Refusal::Denied(denial)
    }
}

/// # Errors
/// If the file cannot be read, or the policy is invalid.
pub(crate) fn read_policy(path: &Path) -> Result<Policy, Fault> {
    open_policy(path).map(|(_, policy)| policy)
}

fn open_policy(path: &Path) -> Result<(WatchedFile<Policy>, Policy), Fault> {
    WatchedFile::open("--policy", path, |path, bytes| {
        let fault = |error| Fault::because(format!("--policy {}", path.display()), error);
        Policy::parse(bytes).map_err(fault)
    })
}

//! The token that proves the agent's identity, sent with each call, and again before the last one expires.

use std::{
    convert::Infallible,
    future::pending,
    path::{Path, PathBuf},
    time::Duration,
};

use decree_api::v1::{self, decision_service_client::DecisionServiceClient};
use service::{Fault, Token, failure::chain};
use tokio::{sync::oneshot, time::sleep};
use tonic::{Request, Status, transport::Channel};

use crate::log::SERVER;

/// The interval of looks at the file. kubelet replaces a token when a fifth of its time is left, two minutes or more.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const CALL_MAX: Duration = Duration::from_secs(5);

/// The proof of the agent's identity on one connection, if any.
#[derive(Debug)]
pub(crate) struct Proof(Option<(PathBuf, Token)>);

impl Proof {
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, Fault> {
        let token = file.map(|file| Ok((file.to_owned(), Token::read(file)?)));
        token.transpose().map(Self)
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let token = self.0.as_ref().map(|(_, token)| token);
        request(message, token)
    }

    /// Renews the session with the id from `welcomed`, during its life, whenever the file has another token.
    pub(super) async fn keep(
        self,
        mut client: DecisionServiceClient<Channel>,
        welcomed: oneshot::Receiver<String>,
    ) -> Infallible {
        // `sent` is the last token that the server has received.
        let (Some((file, mut sent)), Ok(session_id)) = (self.0, welcomed.await) else {
            return pending().await;
        };
        loop {
            sleep(LOOK_EVERY).await;
            let token = match Token::read(&file) {
                Ok(token) if token == sent => continue,
                Ok(token) => token,
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(peer = "token file", error, "token not read");
                    continue;
                }
            };
            match renew(&mut client, &session_id, &token).await {
                Ok(()) => {
                    tracing::info!(peer = SERVER, "session renewed with another token");
                    sent = token;
                }
                Err(status) => {
                    let (code, message) = (status.code(), status.message());
                    tracing::warn!(peer = SERVER, ?code, message, "session not renewed");
                }
            }
        }
    }
}

async fn renew(
    client: &mut DecisionServiceClient<Channel>,
    session_id: &str,
    token: &Token,
) -> Result<(), Status> {
    let session_id = session_id.to_owned();
    let mut request = request(v1::RenewSessionRequest { session_id }, Some(token));
    request.set_timeout(CALL_MAX);
    let renewed = tokio::time::timeout(CALL_MAX, client.renew_session(request));
    let late = |_| Status::deadline_exceeded("no answer");
    renewed.await.map_err(late)?.map(drop)
}

fn request<T>(message: T, token: Option<&Token>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        token.authorize(request.metadata_mut().as_mut());
    }
    request
}

//! The address of a server, and the credentials for it.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use tokio::time;
use tonic::transport::{Channel, Endpoint};

use crate::guard::{Guard, Who};

/// The timeout for a server to accept, which only a hanging server reaches.
const OPENING: Duration = Duration::from_mins(2);

/// A server, and the credentials for it.
#[derive(Clone)]
pub(crate) struct Target {
    address: String,
    /// The source of certificates and tokens; without it, the server speaks plain text and requires nothing.
    guard: Option<Arc<Guard>>,
    who: Who,
    /// The source address in plain text; `None` for the system's choice.
    from: Option<IpAddr>,
}

impl From<&str> for Target {
    fn from(address: &str) -> Self {
        Self::new(address, None)
    }
}

impl Target {
    pub(crate) fn new(address: &str, guard: Option<Arc<Guard>>) -> Self {
        Self {
            address: address.to_owned(),
            guard,
            who: Who::default(),
            from: None,
        }
    }

    /// The same server, with other credentials.
    pub(crate) fn by(mut self, who: &Who) -> Self {
        self.who = who.clone();
        self
    }

    /// The same server, from another address of this machine. If peers have identities, the server distinguishes them by
    /// identity, and the address stays.
    pub(crate) fn reached_from(mut self, address: Ipv4Addr) -> Self {
        self.from = Some(address.into());
        self
    }

    /// The source of certificates and tokens.
    ///
    /// # Panics
    /// If the cell has none.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        self.guard.as_ref().expect("the cell has a guard")
    }

    /// Connects; a refused handshake is an error.
    pub(crate) async fn connect(&self) -> Result<Channel, String> {
        let connecting = async {
            match &self.guard {
                None => {
                    let url = format!("http://{}", self.address);
                    let endpoint = Endpoint::from_shared(url).expect("an address");
                    endpoint.local_address(self.from).connect().await
                }
                Some(guard) => {
                    let connector = guard.connector(&self.address, self.who.certificate.as_deref());
                    let endpoint = Endpoint::from(connector.endpoint().uri());
                    endpoint.connect_with_connector(connector).await
                }
            }
        };
        let connected = time::timeout(OPENING, connecting).await;
        let connected = connected.map_err(|_| "no connection".to_owned())?;
        connected.map_err(|_| "no connection".to_owned())
    }

    /// The header with the token of the call of this number, if there is a token.
    pub(crate) fn authorization(&self, number: u64) -> Option<String> {
        let token = self.who.token.as_ref()?;
        Some(format!("Bearer {}", self.guard().token(token, number)))
    }
}

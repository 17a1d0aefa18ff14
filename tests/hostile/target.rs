//! Where a server is, and as whom it is reached.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use tokio::time;
use tonic::transport::{Channel, Endpoint};

use crate::guard::{Guard, Who};

/// How long a server may take to accept: only one that hangs takes as long.
const OPENING: Duration = Duration::from_mins(2);

/// A server, and as whom it is reached.
#[derive(Clone)]
pub(crate) struct Target {
    address: String,
    /// What knows certificates and tokens; a server without it speaks plain text and asks for nothing.
    guard: Option<Arc<Guard>>,
    who: Who,
    /// The address from which it is reached in plain text; the system's choice where there is none.
    from: Option<IpAddr>,
}

impl From<&str> for Target {
    fn from(address: &str) -> Self {
        Self::new(address, None)
    }
}

// === impl Target ===

impl Target {
    pub(crate) fn new(address: &str, guard: Option<Arc<Guard>>) -> Self {
        Self {
            address: address.to_owned(),
            guard,
            who: Who::default(),
            from: None,
        }
    }

    /// Returns the same server, reached as somebody else.
    pub(crate) fn by(mut self, who: &Who) -> Self {
        self.who = who.clone();
        self
    }

    /// Returns the same server, reached from another address of this machine. Where peers have identities, those tell them apart, and the
    /// address stays.
    pub(crate) fn reached_from(mut self, address: Ipv4Addr) -> Self {
        self.from = Some(address.into());
        self
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns what knows certificates and tokens.
    ///
    /// # Panics
    /// Where the cell has none.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        self.guard.as_ref().expect("the cell has a guard")
    }

    /// Connects; a refused handshake is no connection.
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

    /// Returns the header that carries the token of the call of this number, if one is sent.
    pub(crate) fn authorization(&self, number: u64) -> Option<String> {
        let token = self.who.token.as_ref()?;
        Some(format!("Bearer {}", self.guard().token(token, number)))
    }
}

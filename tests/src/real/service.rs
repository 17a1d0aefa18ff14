//! A Service as its clients see it: one address that leads each connection to one of several servers.

use std::{
    io,
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use super::proxy::copy;
use crate::{lock, rng::Rng};

/// Copies each connection to one of its endpoints, drawn by seed, as kube-proxy does. The service has separate threads.
#[derive(Debug)]
pub struct Service {
    address: String,
    endpoints: Arc<Mutex<Vec<String>>>,
}

impl Service {
    /// Starts a service without endpoints.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let address = listener.local_addr().expect("it is bound").to_string();
        let endpoints: Arc<Mutex<Vec<String>>> = Arc::default();
        let (chosen, mut rng) = (Arc::clone(&endpoints), Rng::new(seed));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let endpoints = lock(&chosen);
                let endpoint = (!endpoints.is_empty()).then(|| rng.pick(&endpoints).clone());
                drop(endpoints);
                // The client notices if the endpoint is away.
                let _ = endpoint.map(|endpoint| carry(client, &endpoint));
            }
        });
        Self { address, endpoints }
    }

    /// Returns its address as a URL of a decision server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the endpoints of new connections.
    pub fn set_endpoints(&self, endpoints: Vec<String>) {
        *lock(&self.endpoints) = endpoints;
    }
}

fn carry(client: TcpStream, endpoint: &str) -> io::Result<()> {
    let server = TcpStream::connect(endpoint)?;
    let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || copy(from_client, server));
    thread::spawn(move || copy(from_server, client));
    Ok(())
}

//! The shared resources of the containers of a pod: its network, the names of Services, and connections to other pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{self, JoinHandle},
};

use super::{network::Network, services::Services};

/// A network with the Services of the cluster, and a hosts file with their names.
#[derive(Debug)]
pub(crate) struct Sandbox {
    network: Arc<Network>,
    services: Arc<Services>,
    namespace: String,
    hosts: PathBuf,
    written: String,
    own_ports: BTreeSet<u16>,
    listeners: BTreeMap<SocketAddr, JoinHandle<()>>,
}

impl Sandbox {
    /// Makes a sandbox in a network for a pod in a namespace, with its file in a folder. The pod itself listens on `own_ports` at
    /// all addresses, so it answers its own calls of Services there.
    pub(crate) fn create(
        network: Arc<Network>,
        services: &Arc<Services>,
        (namespace, own_ports): (&str, BTreeSet<u16>),
        folder: &Path,
    ) -> io::Result<Self> {
        let mut sandbox = Self {
            network,
            services: Arc::clone(services),
            namespace: namespace.to_owned(),
            hosts: folder.join("hosts"),
            written: String::new(),
            own_ports,
            listeners: BTreeMap::new(),
        };
        sandbox.follow()?;
        Ok(sandbox)
    }

    pub(crate) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    pub(crate) fn hosts(&self) -> &Path {
        &self.hosts
    }

    /// Updates the Services.
    pub(crate) fn follow(&mut self) -> io::Result<()> {
        let hosts = self.services.hosts(&self.namespace);
        if hosts != self.written {
            // Written in place, because containers have mounted the file itself.
            fs::write(&self.hosts, &hosts)?;
            self.written = hosts;
        }
        let mut addresses = self.services.addresses();
        addresses.retain(|address| !self.own_ports.contains(&address.port()));
        self.listeners.retain(|address, listener| {
            let stays = addresses.contains(address);
            if !stays {
                listener.abort();
            }
            stays
        });
        for address in addresses {
            if !self.listeners.contains_key(&address) {
                let listener = self.network.listen(address)?;
                listener.set_nonblocking(true)?;
                let listener = TcpListener::from_std(listener)?;
                let listener = open(listener, address, Arc::clone(&self.services));
                self.listeners.insert(address, task::spawn(listener));
            }
        }
        Ok(())
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for listener in self.listeners.values() {
            listener.abort();
        }
    }
}

/// Forwards connections to an address to one of its endpoints.
async fn open(listener: TcpListener, address: SocketAddr, services: Arc<Services>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let services = Arc::clone(&services);
        task::spawn(async move {
            let connected = task::spawn_blocking(move || {
                let stream = services.connect(address)?;
                stream.set_nonblocking(true)?;
                Ok::<_, io::Error>(stream)
            });
            // If a Service has no endpoints, the client sees its connection end.
            if let Ok(Ok(server)) = connected.await
                && let Ok(mut server) = TcpStream::from_std(server)
            {
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

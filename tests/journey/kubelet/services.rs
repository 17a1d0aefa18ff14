//! A substitute for kube-proxy and the DNS of a cluster: the addresses of Services, and their endpoints.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tests::lock;

use super::network::Network;

/// The Services of a cluster, and the pods behind them.
#[derive(Debug)]
pub(crate) struct Services {
    api_server: SocketAddr,
    list: Mutex<Vec<Service>>,
    /// By the uid of the pod.
    endpoints: Mutex<BTreeMap<String, Endpoint>>,
    turn: AtomicUsize,
}

/// A pod that may be an endpoint of Services.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) namespace: String,
    pub(crate) labels: Value,
    /// The address of the pod. `None` in the network of a node.
    pub(crate) address: Option<Ipv4Addr>,
    /// The named ports.
    pub(crate) ports: BTreeMap<String, u16>,
    pub(crate) network: Arc<Network>,
    pub(crate) is_ready: bool,
}

/// A Service with an address.
#[derive(Clone, Debug, PartialEq)]
struct Service {
    namespace: String,
    name: String,
    address: Ipv4Addr,
    selector: Value,
    /// Each port with its target, which is a number or a name.
    ports: Vec<(u16, Value)>,
}

impl Services {
    /// Makes an empty list, for an API server at this address.
    pub(crate) fn of(api_server: SocketAddr) -> Self {
        Self {
            api_server,
            list: Mutex::default(),
            endpoints: Mutex::default(),
            turn: AtomicUsize::new(0),
        }
    }

    /// Reads the Services from a list of the API server.
    pub(crate) fn take(&self, items: &[Value]) {
        *lock(&self.list) = items.iter().filter_map(Service::of).collect();
    }

    /// Makes a pod an endpoint of the Services that select it, in place of its earlier data.
    pub(crate) fn add(&self, uid: &str, endpoint: Endpoint) {
        lock(&self.endpoints).insert(uid.to_owned(), endpoint);
    }

    pub(crate) fn remove(&self, uid: &str) {
        lock(&self.endpoints).remove(uid);
    }

    /// The addresses at which pods find Services and each other.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let list = lock(&self.list);
        let of_services = list.iter().flat_map(|service| {
            let ports = service.ports.iter();
            ports.map(|(port, _)| SocketAddr::from((service.address, *port)))
        });
        let mut addresses: Vec<_> = of_services.collect();
        drop(list);
        addresses.extend(lock(&self.endpoints).values().flat_map(Endpoint::addresses));
        addresses
    }

    /// The hosts file of a pod in a namespace.
    pub(crate) fn hosts(&self, namespace: &str) -> String {
        let mut text = "127.0.0.1 localhost\n".to_owned();
        for service in lock(&self.list).iter() {
            let long = format!("{}.{}", service.name, service.namespace);
            let address = service.address;
            let _ = write!(text, "{address} {long}.svc.cluster.local {long}.svc {long}");
            if service.namespace == namespace {
                let _ = write!(text, " {}", service.name);
            }
            text.push('\n');
        }
        text
    }

    /// Connects to the pod at an address, or to an endpoint of the Service there, in turn.
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let nobody = || io::Error::other(format!("nobody answers for {address}"));
        let endpoints = lock(&self.endpoints);
        let mut pods = endpoints.values();
        let pod = pods.find(|it| it.addresses().contains(&address)).cloned();
        drop(endpoints);
        if let Some(pod) = pod {
            return pod.network.connect(address.port());
        }
        let list = lock(&self.list);
        let found = list.iter().find_map(|service| {
            let mut ports = service.ports.iter();
            let (_, target) =
                ports.find(|(port, _)| SocketAddr::from((service.address, *port)) == address)?;
            Some((service.clone(), target.clone()))
        });
        drop(list);
        let (service, target) = found.ok_or_else(nobody)?;
        if service.namespace == "default" && service.name == "kubernetes" {
            return TcpStream::connect(self.api_server);
        }
        let endpoints = lock(&self.endpoints);
        let ready = endpoints.values().filter(|it| service.selects(it));
        let ready: Vec<_> = ready.cloned().collect();
        drop(endpoints);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let endpoint = ready.get(turn % ready.len().max(1)).ok_or_else(nobody)?;
        let port = match target.as_str() {
            Some(name) => endpoint.ports.get(name).copied(),
            None => target.as_u64().and_then(|it| u16::try_from(it).ok()),
        };
        endpoint.network.connect(port.ok_or_else(nobody)?)
    }
}

impl Endpoint {
    /// The addresses at which other pods find it.
    fn addresses(&self) -> Vec<SocketAddr> {
        let ports = self.ports.values();
        let of = |address: Ipv4Addr| {
            ports
                .map(|port| SocketAddr::from((address, *port)))
                .collect()
        };
        self.address.map(of).unwrap_or_default()
    }
}

impl Service {
    /// `None` if the Service has no address.
    fn of(object: &Value) -> Option<Self> {
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        let ports = spec["ports"].as_array()?.iter();
        let ports = ports.filter_map(|port| {
            let number = u16::try_from(port["port"].as_u64()?).ok()?;
            Some((number, port["targetPort"].clone()))
        });
        Some(Self {
            namespace: metadata["namespace"].as_str()?.to_owned(),
            name: metadata["name"].as_str()?.to_owned(),
            address: spec["clusterIP"].as_str()?.parse().ok()?,
            selector: spec["selector"].clone(),
            ports: ports.collect(),
        })
    }

    fn selects(&self, endpoint: &Endpoint) -> bool {
        let Some(wanted) = self.selector.as_object() else {
            return false;
        };
        let mut labels = wanted.iter();
        endpoint.is_ready
            && endpoint.namespace == self.namespace
            && labels.all(|(label, value)| endpoint.labels[label] == *value)
    }
}

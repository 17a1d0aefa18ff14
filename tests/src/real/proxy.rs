//! A proxy to the API server whose connections a test can cut.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

use tempfile::TempDir;

use crate::lock;

/// Copies bytes both ways between clients and an address. The proxy has separate threads, and passes TLS through.
#[derive(Debug)]
pub struct Proxy {
    address: String,
    ways: Arc<Mutex<Vec<TcpStream>>>,
    gate: Arc<Gate>,
    folder: TempDir,
}

/// Whether the proxy holds requests.
#[derive(Debug, Default)]
struct Gate {
    held: Mutex<bool>,
    opened: Condvar,
}

impl Proxy {
    /// Starts a proxy in front of an address such as `127.0.0.1:6443`.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (ways, target) = (Arc::default(), target.to_owned());
        let gate: Arc<Gate> = Arc::default();
        let (accepted, passed) = (Arc::clone(&ways), Arc::clone(&gate));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The client notices if the target is away.
                let _ = carry(client, &target, &accepted, &passed);
            }
        });
        Self {
            address,
            ways,
            gate,
            folder: TempDir::with_prefix("decree-proxy-").expect("there is room"),
        }
    }

    /// Returns a copy of a kubeconfig that uses the proxy.
    ///
    /// # Panics
    /// If `like` is not a kubeconfig of one cluster.
    pub fn kubeconfig(&self, like: &Path, url: &str) -> PathBuf {
        let text = fs::read_to_string(like).expect("it is there");
        assert!(text.contains(url), "{text} names {url}");
        let text = text.replace(url, &format!("https://{}", self.address));
        let file = self.folder.path().join("proxied.kubeconfig");
        fs::write(&file, text).expect("there is room");
        file
    }

    /// Passes answers and holds requests, until the next cut.
    pub fn hold_requests(&self) {
        self.gate.set(true);
    }

    /// Returns the number of connections since the last cut.
    pub fn accepted(&self) -> usize {
        let ways = lock(&self.ways);
        ways.len()
    }

    /// Cuts all connections, and returns their number. The proxy accepts new connections.
    pub fn cut(&self) -> usize {
        let mut ways = lock(&self.ways);
        let cut = ways.drain(..);
        // Only open connections count.
        let count = cut
            .filter(|way| way.shutdown(Shutdown::Both).is_ok())
            .count();
        // Drops the held requests.
        self.gate.set(false);
        count
    }
}

impl Gate {
    fn set(&self, held: bool) {
        *lock(&self.held) = held;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let held = lock(&self.held);
        let opened = self.opened.wait_while(held, |held| *held);
        drop(opened.unwrap_or_else(PoisonError::into_inner));
    }
}

fn carry(
    client: TcpStream,
    target: &str,
    ways: &Mutex<Vec<TcpStream>>,
    gate: &Arc<Gate>,
) -> io::Result<()> {
    let server = TcpStream::connect(target)?;
    let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
    lock(ways).push(client.try_clone()?);
    let gate = Arc::clone(gate);
    thread::spawn(move || copy_requests(from_client, server, &gate));
    thread::spawn(move || copy(from_server, client));
    Ok(())
}

fn copy_requests(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        gate.pass();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Copies until either side ends, and then ends both.
pub(super) fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

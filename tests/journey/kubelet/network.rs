//! The network of a pod: a name space with only the loopback interface, which has the addresses of Services and pods.

use std::{
    fs::File,
    io::{self, Read as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd as _, AsRawFd as _},
    process::{self, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Brings the loopback interface up with the networks of Services, as `tests/cluster/run` sets them for the API server, and of
/// pods: on this interface, each address of a network is local. Writes when it has.
const BRING_UP: &str = "ip link set lo up; ip address add 10.0.0.1/24 dev lo; ip address add 10.1.0.1/16 dev lo; echo; read -r _ || :";
/// The timeout of connections within this machine.
const CONNECT: Duration = Duration::from_secs(30);

/// A network name space. It lasts as long as this value, or as long as a process in it.
#[derive(Debug)]
pub(crate) struct Network {
    space: File,
}

impl Network {
    /// Fails if this machine lets nobody make name spaces.
    pub(crate) fn create() -> io::Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-euc", BRING_UP])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let spoken = holder.stdout.take().map(|mut it| it.read_exact(&mut [0]));
        let space = File::open(format!("/proc/{}/ns/net", holder.id()));
        drop(holder.stdin.take());
        let _ended = holder.wait()?;
        spoken.transpose()?;
        Ok(Self { space: space? })
    }

    /// The path by which other programs enter the name space.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.space.as_raw_fd())
    }

    /// Listens at an address of a Service.
    pub(crate) fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.within(|| TcpListener::bind(address))
    }

    /// Connects to a port in the name space.
    pub(crate) fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.within(|| TcpStream::connect_timeout(&address, CONNECT))
    }

    /// Runs `act` on a thread in the name space; its sockets stay there.
    fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let enter = || {
            move_into_link_name_space(self.space.as_fd(), Some(LinkNameSpaceType::Network))?;
            act()
        };
        let done = thread::scope(|scope| scope.spawn(enter).join());
        done.unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

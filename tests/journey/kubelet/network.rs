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

use rustix::{
    net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, socket},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

/// The networks of Services, as `tests/cluster/run` sets them for the API server, and of pods.
const LOCAL: [([u8; 4], u8); 2] = [([10, 0, 0, 1], 24), ([10, 1, 0, 1], 16)];
/// The loopback interface is the first of each name space.
const LOOPBACK: u32 = 1;
/// The types of requests to the kernel, and their flags, in the words of rtnetlink.
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const REQUEST: u16 = 0x405;
const ERROR: u16 = 2;
/// The timeout of connections within this machine.
const CONNECT: Duration = Duration::from_secs(30);

/// A network name space. It lasts as long as this value, or as long as a process in it.
#[derive(Debug)]
pub(crate) struct Network {
    space: File,
}

// === impl Network ===

impl Network {
    /// Fails if this machine lets nobody make name spaces.
    pub(crate) fn create() -> io::Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo; read -r _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        // The holder is in the name space when it writes.
        let spoken = holder.stdout.take().map(|mut it| it.read_exact(&mut [0]));
        let space = File::open(format!("/proc/{}/ns/net", holder.id()));
        drop(holder.stdin.take());
        let _ended = holder.wait()?;
        spoken.transpose()?;
        let network = Self { space: space? };
        network.within(bring_up)?;
        Ok(network)
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

/// Brings the loopback interface up, and adds the networks of Services and pods: on this interface, each address of a network is
/// local.
fn bring_up() -> io::Result<()> {
    let mut up = vec![0, 0, 0, 0];
    up.extend(LOOPBACK.to_ne_bytes());
    // Its flags, and their mask: the interface is up.
    up.extend([1_u32.to_ne_bytes(), 1_u32.to_ne_bytes()].concat());
    ask(NEW_LINK, &up)?;
    for (address, prefix) in LOCAL {
        let mut given = vec![2, prefix, 0, 0];
        given.extend(LOOPBACK.to_ne_bytes());
        // The address of the interface, and the address of its other end.
        for attribute in [1_u16, 2] {
            given.extend([8_u16.to_ne_bytes(), attribute.to_ne_bytes()].concat());
            given.extend(address);
        }
        ask(NEW_ADDRESS, &given)?;
    }
    Ok(())
}

/// Requests a change of the network from the kernel, and waits for it.
fn ask(request: u16, body: &[u8]) -> io::Result<()> {
    // The first protocol of netlink is for routes, addresses and links.
    let kernel = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    let length = u32::try_from(16 + body.len()).map_err(io::Error::other)?;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend([request.to_ne_bytes(), REQUEST.to_ne_bytes()].concat());
    message.extend([0; 8]);
    message.extend(body);
    send(&kernel, &message, SendFlags::empty())?;
    let mut answer = [0; 512];
    let (_, read) = recv(&kernel, &mut answer[..], RecvFlags::empty())?;
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    let code = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
    match (kind, code) {
        (ERROR, 0) if read >= 20 => Ok(()),
        (ERROR, code) => Err(io::Error::from_raw_os_error(-code)),
        (other, _) => Err(io::Error::other(format!("the kernel answers with {other}"))),
    }
}

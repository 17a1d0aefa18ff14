//! What a port speaks that does not answer gRPC in plain text, in words for a person.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use crate::transport::endpoint::HostPort;

/// The timeout of the connection to an address, and of the answer.
const LOOK: Duration = Duration::from_millis(300);

/// What another port than that of a server says to a request of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// An answer of HTTP/1.1, as an admin port gives.
    Http,
    /// An alert of TLS.
    Tls,
    /// Nothing.
    Nothing,
}

impl Spoken {
    /// Why gRPC in plain text fails there.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Http => "the port speaks HTTP/1.1, as an admin port does",
            Self::Tls => "the port speaks TLS",
            Self::Nothing => "the port accepts connections and does not answer",
        }
    }

    /// What to do.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Http => "name the port for gRPC with --server; it is 50051 by default",
            Self::Tls => "write --server https://HOST:PORT, with --tls-ca",
            Self::Nothing => "check that decree-server listens there, and not another program",
        }
    }

    /// Asks a port for a page. `None` if it is closed, or says something else.
    pub(crate) fn at(HostPort { host, port }: &HostPort) -> Option<Self> {
        let mut addresses = (host.as_str(), *port).to_socket_addrs().ok()?;
        let mut stream = addresses.find_map(|it| TcpStream::connect_timeout(&it, LOOK).ok())?;
        let address = stream.peer_addr().ok()?;
        stream.set_read_timeout(Some(LOOK)).ok()?;
        let request =
            format!("GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut head = [0; 7];
        match stream.read_exact(&mut head) {
            Ok(()) if head == *b"HTTP/1." => Some(Self::Http),
            // An alert of TLS 1.0 to 1.3.
            Ok(()) if head[..2] == [21, 3] => Some(Self::Tls),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(Self::Nothing),
            Ok(()) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, sync::mpsc, thread};

    use super::*;

    #[test]
    fn port_that_does_not_speak_grpc_is_told_by_what_it_says() {
        for (answer, expected) in [
            (&b"HTTP/1.1 200 OK\r\n"[..], Some(Spoken::Http)),
            (&[21, 3, 3, 0, 2, 2, 10], Some(Spoken::Tls)),
            (b"SSH-2.0-x\r\n", None),
            (b"", Some(Spoken::Nothing)),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            let address = HostPort {
                host: address.ip().to_string(),
                port: address.port(),
            };
            let (answered, asked) = mpsc::sync_channel::<()>(1);
            thread::scope(|scope| {
                scope.spawn(move || {
                    let (mut stream, _) = listener.accept().expect("it asks");
                    stream.write_all(answer).expect("it listens");
                    // The connection stays open until the answer is judged.
                    asked.recv().expect_err("nothing is sent");
                });
                assert_eq!(Spoken::at(&address), expected, "{answer:?}");
                drop(answered);
            });
            assert_eq!(Spoken::at(&address), None, "it is closed");
        }
    }
}

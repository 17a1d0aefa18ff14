//! Connections that are held, or that speak other protocols, or that are slow.

use std::time::Duration;

use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};

use crate::{
    handshakes::alerted,
    process::Port,
    script::hex,
    seen::{Seen, one},
};

/// The maximum time for which a server keeps a connection that it should close.
const PATIENCE: Duration = Duration::from_mins(2);
/// The number of bytes in one read of an answer.
const PIECE: usize = 64 << 10;

/// The type of a TLS record that ends a handshake in the clear.
const ALERT: u8 = 21;

/// Connections to one port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sockets {
    pub(crate) port: Port,
    #[serde(default = "one")]
    connections: u64,
    /// The first text, sent literally.
    #[serde(default)]
    begin: String,
    /// The text after `begin`; `x*300` means 300 x.
    #[serde(default)]
    text: String,
    /// The bytes after the text.
    #[serde(default)]
    hex: String,
    /// The last text, sent literally.
    #[serde(default)]
    end: String,
    /// The delay of the client before each byte.
    #[serde(default)]
    drip_ms: u64,
    /// Whether the client closes its half after that.
    #[serde(default)]
    half_close: bool,
    /// Whether the connections stay open and are not read to their end.
    #[serde(default)]
    hold: bool,
    /// Whether the client closes the connections itself, at once.
    #[serde(default)]
    leave: bool,
}

// === impl Sockets ===

impl Sockets {
    /// Opens all connections; refused connections are observed.
    pub(crate) async fn run(&self, address: &str) -> Seen {
        let connection = || {
            let (this, address) = (self.clone(), address.to_owned());
            async move { this.connection(&address).await }
        };
        Seen::of_connections(self.connections, connection).await
    }

    async fn connection(&self, address: &str) -> Seen {
        let Ok(mut stream) = TcpStream::connect(address).await else {
            return Seen::ended("closed");
        };
        let sent = time::timeout(PATIENCE, self.send(&mut stream)).await;
        if self.leave {
            return Seen::ended("left");
        }
        if self.hold {
            return Seen::held(stream);
        }
        if sent.is_err() {
            return Seen::ended("open");
        }
        read(&mut stream).await
    }

    /// Sends everything; the test reads how a server closes before the end.
    async fn send(&self, stream: &mut TcpStream) {
        let (begin, end) = (self.begin.as_bytes(), self.end.as_bytes());
        let bytes = [begin, &self.said(), &hex(&self.hex), end].concat();
        if self.drip_ms == 0 {
            // The test reads how the connection ends.
            let _ = stream.write_all(&bytes).await;
        } else {
            for byte in bytes {
                time::sleep(Duration::from_millis(self.drip_ms)).await;
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
            }
        }
        if self.half_close {
            let _ = stream.shutdown().await;
        }
    }

    fn said(&self) -> Vec<u8> {
        let parts = self.text.rsplit_once('*');
        let times = parts.and_then(|(text, times)| Some((text, times.parse::<usize>().ok()?)));
        let text = times.map_or_else(|| self.text.clone(), |(text, times)| text.repeat(times));
        text.into_bytes()
    }
}

/// Reads to the end. An answer of HTTP/1 names its code.
async fn read(stream: &mut TcpStream) -> Seen {
    let mut answer = Vec::new();
    let mut bytes = 0;
    let mut piece = vec![0; PIECE];
    let whole = async {
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            bytes += read;
            if answer.len() < PIECE {
                answer.extend_from_slice(&piece[..read]);
            }
        }
    };
    let in_time = time::timeout(PATIENCE, whole).await.is_ok();
    let alert = match answer[..] {
        [ALERT, 3, _, 0, 2, _, description, ..] => Some(alerted(description.into())),
        _ => None,
    };
    let answer = String::from_utf8_lossy(&answer);
    let code = answer
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5));
    let end = match (code, in_time) {
        (Some(code), _) => format!("HTTP {code}"),
        (None, true) => alert.unwrap_or_else(|| "closed".to_owned()),
        (None, false) => "open".to_owned(),
    };
    let mut seen = Seen::ended(end);
    seen.bytes = bytes;
    seen
}

//! The address of a server, as flags specify it.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use http::Uri;

const UNIX: &str = "unix:";
/// Why a text is no [`Endpoint`] or [`ListenEndpoint`].
const NO_URL: &str =
    "must be a URL such as http://127.0.0.1:50051 or https://HOST:PORT, or unix:PATH";
const MORE_THAN_HOST: &str = "must be a URL without path and query, such as https://HOST:PORT";
const NO_ADDRESS: &str = "must be an address and a port, such as 127.0.0.1:50051, or unix:PATH";
const NO_PATH: &str = "must have a path after unix:, such as unix:/run/decree/server.sock";

/// The address that a client connects to: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Plain HTTP/2 over TCP.
    Http(HostPort),
    /// HTTP/2 over TLS.
    Https(HostPort),
    /// Plain HTTP/2 over a Unix socket.
    Unix(PathBuf),
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port, by default the one of the scheme.
    pub port: u16,
}

/// The address that a server listens on: `ADDRESS:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenEndpoint {
    /// A TCP socket.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Endpoint {
    /// Whether all data stays on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Http(HostPort { host, .. }) | Self::Https(HostPort { host, .. }) => {
                let address: Option<IpAddr> = host.parse().ok();
                address.map_or(host == "localhost", |address| address.is_loopback())
            }
        }
    }

    /// The URI for HTTP. A Unix socket gets a placeholder.
    pub fn uri(&self) -> Uri {
        match self {
            Self::Http(_) | Self::Https(_) => self.to_string().parse().unwrap_or_default(),
            Self::Unix(_) => Uri::from_static("http://localhost"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return socket_path(path).map(Self::Unix);
        }
        let uri: Uri = text.parse().map_err(|_| NO_URL)?;
        let (make, port): (fn(HostPort) -> Self, u16) = match uri.scheme_str() {
            Some("http") => (Self::Http, 80),
            Some("https") => (Self::Https, 443),
            Some(_) | None => return Err(NO_URL),
        };
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or(NO_URL)?;
        let named = uri.authority().map_or("", |authority| authority.as_str());
        if named.contains('@') || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(MORE_THAN_HOST);
        }
        let port = match named.rsplit_once(host) {
            Some((_, "")) => port,
            Some(_) | None => uri.port_u16().ok_or(NO_URL)?,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(make(HostPort {
            host: host.to_owned(),
            port,
        }))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(authority) => write!(formatter, "http://{authority}"),
            Self::Https(authority) => write!(formatter, "https://{authority}"),
            Self::Unix(path) => write!(formatter, "{UNIX}{}", path.display()),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

impl ListenEndpoint {
    /// Whether only this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// The address of a TCP socket.
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for ListenEndpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for ListenEndpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return socket_path(path).map(Self::Unix);
        }
        let address = text.parse().map_err(|_| NO_ADDRESS)?;
        Ok(Self::Tcp(address))
    }
}

impl fmt::Display for ListenEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "{UNIX}{}", path.display()),
        }
    }
}

/// Parses the path after `unix:`. `unix:///path`, the form of gRPC, is the same as `unix:/path`.
fn socket_path(text: &str) -> Result<PathBuf, &'static str> {
    let path = text.strip_prefix("//").unwrap_or(text);
    if path.is_empty() || path.contains('\0') {
        Err(NO_PATH)
    } else {
        Ok(path.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_as_they_are_read() {
        for text in [
            "http://127.0.0.1:50051",
            "https://decree.example:443",
            "http://[::1]:1",
            "unix:/run/decree/server.sock",
            "unix:server.sock",
        ] {
            let endpoint: Endpoint = text.parse().expect(text);
            assert_eq!(endpoint.to_string(), text);
        }
        let read = |text: &str| text.parse::<Endpoint>().expect(text).to_string();
        assert_eq!(read("https://decree/"), "https://decree:443");
        assert_eq!(read("http://decree"), "http://decree:80");
        assert_eq!(read("unix:///run/a.sock"), "unix:/run/a.sock");
    }

    #[test]
    fn text_that_is_no_endpoint_is_refused_with_what_would_be_right() {
        for (text, error) in [
            ("", NO_URL),
            ("decree:50051", NO_URL),
            ("ftp://decree", NO_URL),
            ("http://", NO_URL),
            ("http://decree:70000", NO_URL),
            ("http://decree:", NO_URL),
            ("http://me@decree:1", MORE_THAN_HOST),
            ("http://decree/v1", MORE_THAN_HOST),
            ("https://decree?x", MORE_THAN_HOST),
            ("unix:", NO_PATH),
            ("unix://", NO_PATH),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(error), "{text}");
        }
    }

    #[test]
    fn local_is_what_does_not_leave_the_machine() {
        let local = |text: &str| text.parse::<Endpoint>().expect(text).is_local();
        for text in [
            "http://127.9.9.9:1",
            "http://[::1]:1",
            "http://localhost:1",
            "unix:a",
        ] {
            assert!(local(text), "{text}");
        }
        for text in [
            "http://10.0.0.1:1",
            "http://decree:1",
            "http://[::2]:1",
            "http://0.0.0.0:1",
        ] {
            assert!(!local(text), "{text}");
        }
        let listens = |text: &str| text.parse::<ListenEndpoint>().expect(text).is_local();
        assert!(listens("127.0.0.1:0") && listens("[::1]:0") && listens("unix:a"));
        assert!(!listens("0.0.0.0:0") && !listens("[::]:0"));
    }

    #[test]
    fn listeners_are_addresses_or_paths() {
        for text in ["127.0.0.1:50051", "[::]:1", "unix:/run/decree/server.sock"] {
            let endpoint: ListenEndpoint = text.parse().expect(text);
            assert_eq!(endpoint.to_string(), text);
        }
        for text in ["", "50051", "localhost:1", "http://127.0.0.1:1"] {
            assert_eq!(text.parse::<ListenEndpoint>(), Err(NO_ADDRESS), "{text}");
        }
    }
}

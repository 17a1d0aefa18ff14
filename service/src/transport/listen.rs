//! Sockets that a server listens on.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::ListenError;
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::transport::{endpoint::ListenEndpoint, peer::PeerAddress, stream::ByteStream};

/// Owner and group of a socket may connect. The mode of its folder can only restrict that further.
const SOCKET_MODE: u32 = 0o660;

/// A listening socket. Dropping it closes it, and removes the file of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    kind: ListenerKind,
    endpoint: ListenEndpoint,
}

#[derive(Debug)]
enum ListenerKind {
    Tcp(TcpListener),
    Unix(
        UnixListener,
        #[expect(dead_code, reason = "held for its drop")] SocketFile,
    ),
}

/// An accepted connection.
#[derive(Debug)]
pub struct Socket {
    pub(crate) stream: ByteStream,
    /// The address of the peer.
    pub address: PeerAddress,
}

/// The file of a Unix socket, and the lock of its owner.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode, to recognize the file.
    number: (u64, u64),
    _lock: File,
}

impl Listener {
    /// Opens the socket for gRPC. Port 0 picks a free port. A Unix socket without a listener is replaced.
    ///
    /// # Errors
    /// If the address is not available, or the path is in use by a running server, or is not a socket.
    pub async fn bind(endpoint: &ListenEndpoint) -> Result<Self, ListenError> {
        let (kind, endpoint) = match endpoint {
            ListenEndpoint::Tcp(address) => {
                let listener = crate::listen("grpc", "--listen", *address).await?;
                let address = listener.local_addr().unwrap_or(*address);
                (ListenerKind::Tcp(listener), address.into())
            }
            ListenEndpoint::Unix(path) => {
                let bound = bind_unix(path).await;
                let (listener, file) = bound.map_err(|source| ListenError {
                    listener: "grpc",
                    flag: "--listen",
                    address: endpoint.to_string(),
                    source,
                })?;
                tracing::info!(listener = "grpc", address = %endpoint, "listening");
                (ListenerKind::Unix(listener, file), endpoint.clone())
            }
        };
        Ok(Self { kind, endpoint })
    }

    /// The listen address, with the actual port.
    pub const fn endpoint(&self) -> &ListenEndpoint {
        &self.endpoint
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// The errors of the system. Most are temporary, such as a lack of file descriptors.
    pub async fn accept(&self) -> io::Result<Socket> {
        match &self.kind {
            ListenerKind::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Without `TCP_NODELAY`, small frames wait for acknowledgements, but the connection works.
                let _ = stream.set_nodelay(true);
                Ok(Socket {
                    stream: ByteStream::Tcp(stream),
                    address: PeerAddress::Tcp(address),
                })
            }
            ListenerKind::Unix(listener, _) => Ok(Socket {
                stream: ByteStream::Unix(listener.accept().await?.0),
                address: PeerAddress::Unix,
            }),
        }
    }
}

/// Binds a Unix socket. Only the holder of the lock file may remove a socket without a listener, so two servers cannot remove each
/// other's socket.
async fn bind_unix(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let taken = || io::Error::new(io::ErrorKind::AddrInUse, "another process listens on it");
    if fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
        let text = "the path exists and is not a socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let lock = open_lock(path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if is_listened_on(path).await {
        return Err(taken());
    }
    match fs::remove_file(path) {
        Ok(()) => tracing::info!(path = %path.display(), "socket of an ended process replaced"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    let file = SocketFile {
        path: path.to_owned(),
        number: fs::symlink_metadata(path).map(number)?,
        _lock: lock,
    };
    fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
    Ok((listener, file))
}

/// Opens the lock file beside a socket. The server follows no symbolic link and writes nothing to the file. So a user with write access
/// to the folder cannot redirect the server to another file.
fn open_lock(socket: &Path) -> io::Result<File> {
    let mut beside = socket.as_os_str().to_owned();
    beside.push(".lock");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(PathBuf::from(beside))
}

/// Whether a process accepts connections on the socket, even one that does not use the lock.
async fn is_listened_on(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => true,
        // The accept queue is full.
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

fn number(metadata: Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may be gone with its folder, or belong to another server now.
        let found = fs::symlink_metadata(&self.path).map(number);
        if found.is_ok_and(|found| found == self.number) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn bind(folder: &tempfile::TempDir) -> Result<Listener, io::ErrorKind> {
        let path = folder.path().join("server.sock");
        let bound = Listener::bind(&ListenEndpoint::Unix(path)).await;
        bound.map_err(|error| error.source.kind())
    }

    #[tokio::test]
    async fn socket_of_an_ended_process_is_replaced_and_that_of_a_live_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("server.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("it can be bound"));
        assert!(path.exists(), "the file stays behind");
        let first = bind(&folder).await.expect("the file is stale");
        let second = bind(&folder).await.expect_err("it is taken");
        assert_eq!(second, io::ErrorKind::AddrInUse);
        let mode = fs::metadata(&path).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, SOCKET_MODE, "for owner and group only");
        let connected = UnixStream::connect(&path).await;
        connected.expect("the first still listens");
        drop(first);
        assert!(!path.exists(), "the file went with its listener");
        bind(&folder).await.expect("it is free again");
    }

    #[tokio::test]
    async fn socket_of_a_process_that_takes_no_lock_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("server.sock");
        let other = std::os::unix::net::UnixListener::bind(&path).expect("it can be bound");
        let taken = bind(&folder).await.expect_err("taken");
        assert_eq!(taken, io::ErrorKind::AddrInUse);
        drop(other);
        let ours = bind(&folder).await.expect("stale now");
        fs::remove_file(&path).expect("somebody removes it");
        let _other = std::os::unix::net::UnixListener::bind(&path).expect("it is free");
        drop(ours);
        assert!(path.exists(), "the other's stays");
    }

    #[tokio::test]
    async fn lock_follows_no_link_and_empties_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = folder.path().join("server.sock.lock");
        let precious = folder.path().join("precious");
        fs::write(&precious, "precious").expect("it can be written");
        std::os::unix::fs::symlink(&precious, &lock).expect("a link");
        let refused = bind(&folder).await.expect_err("a link");
        assert_ne!(refused, io::ErrorKind::AddrInUse);
        assert_ne!(refused, io::ErrorKind::AlreadyExists);
        fs::remove_file(&lock).expect("it is there");
        fs::rename(&precious, &lock).expect("it can be moved");
        drop(bind(&folder).await.expect("it can be locked"));
        assert_eq!(fs::read_to_string(&lock).expect("it is there"), "precious");
    }

    #[tokio::test]
    async fn file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("server.sock");
        fs::write(&path, "precious").expect("it can be written");
        let error = bind(&folder).await.expect_err("it is no socket");
        assert_eq!(error, io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious");
    }
}

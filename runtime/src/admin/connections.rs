//! The connections of the admin port: few, and none for long.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long a connection may last. A scraper connects again.
const AGE_MAX: Duration = Duration::from_secs(20);

/// Accepts connections, of which a new one displaces the oldest where there are too many.
#[derive(Debug)]
pub(super) struct Connections {
    listener: TcpListener,
    max: usize,
    /// Those that are open, the oldest first.
    open: VecDeque<Weak<CancellationToken>>,
}

/// A connection that ends when its time has come.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    age: Pin<Box<Sleep>>,
    displaced: Pin<Box<WaitForCancellationFutureOwned>>,
    _open: Arc<CancellationToken>,
}

// === impl Connections ===

impl Connections {
    pub(super) const fn new(listener: TcpListener, max: usize) -> Self {
        Self {
            listener,
            max,
            open: VecDeque::new(),
        }
    }

    fn open(&mut self, stream: TcpStream) -> Connection {
        self.open.retain(|connection| connection.strong_count() > 0);
        while self.open.len() >= self.max {
            let oldest = self.open.pop_front();
            if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
                oldest.cancel();
            }
        }
        let token = CancellationToken::new();
        let displaced = Box::pin(token.clone().cancelled_owned());
        let open = Arc::new(token);
        self.open.push_back(Arc::downgrade(&open));
        Connection {
            stream,
            age: Box::pin(sleep(AGE_MAX)),
            displaced,
            _open: open,
        }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // It waits where the system has no room for another.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (self.open(stream), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

// === impl Connection ===

impl Connection {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let is_over =
            self.displaced.as_mut().poll(cx).is_ready() || self.age.as_mut().poll(cx).is_ready();
        match is_over {
            true => Poll::Ready(io::ErrorKind::TimedOut.into()),
            false => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.poll_end(cx) {
            Poll::Ready(end) => Poll::Ready(Err(end)),
            Poll::Pending => Pin::new(&mut self.stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_end(cx) {
            Poll::Ready(end) => Poll::Ready(Err(end)),
            Poll::Pending => Pin::new(&mut self.stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

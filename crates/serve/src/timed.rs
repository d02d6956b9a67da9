//! A connection whose client must read: one that takes no bytes for a while is closed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How long a client may take no bytes of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct TimedStream {
    stream: TcpStream,
    timeout: Duration,
    /// Until when the client must take bytes, if it does not now.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        TimedStream { stream, timeout: WRITE_TIMEOUT, waiting: None }
    }

    /// An attempt to write: the time begins with the first one that must wait.
    fn limit<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.timeout)));
        waiting.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::net::TcpListener;

    #[test]
    fn who_does_not_read_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for place in ["127.0.0.1:0", "[::1]:0"] {
                // A host without IPv6 shows it for the other family.
                let Ok(listener) = TcpListener::bind(place).await else { continue };
                let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                let mut timed =
                    TimedStream { timeout: Duration::from_millis(50), ..TimedStream::new(stream) };
                let block = vec![0; 1 << 20];
                let error = loop {
                    let written = poll_fn(|context| Pin::new(&mut timed).poll_write(context, &block)).await;
                    if let Err(error) = written {
                        break error;
                    }
                };
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            }
        });
    }
}

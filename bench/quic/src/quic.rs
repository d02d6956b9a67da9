//! QUIC.

use crate::{Failed, WINDOW_BYTES, answer, ask, keys};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ConnectionError, Endpoint, Incoming, ServerConfig, TransportConfig, VarInt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::task::yield_now;

/// A connection that has ended well.
const DONE: VarInt = VarInt::from_u32(0);
/// Turns of all other tasks until a connection has sent its last packet: one is enough for the task that sends it.
const TURNS_TO_CLOSE: usize = 4;

pub(crate) async fn serve(address: SocketAddr) -> Result<(), Failed> {
    let endpoint = listen(address)?;
    while let Some(incoming) = endpoint.accept().await {
        let client = incoming.remote_address();
        tokio::spawn(async move {
            if let Err(error) = serve_one(incoming).await {
                println!("stacklab-quic: quic {client}: {error}");
            }
        });
    }
    Ok(())
}

fn listen(address: SocketAddr) -> Result<Endpoint, Failed> {
    let crypto = QuicServerConfig::try_from(keys::configure_server()?)?;
    Ok(Endpoint::server(ServerConfig::with_crypto(Arc::new(crypto)), address)?)
}

/// Serves a client until it closes, and says how the connection has ended.
async fn serve_one(incoming: Incoming) -> Result<ConnectionError, Failed> {
    let connection = incoming.await?;
    let (send, receive) = connection.accept_bi().await?;
    answer(receive, send).await?;
    // What was sent is under way: the client closes when it has all of it.
    Ok(connection.closed().await)
}

pub(crate) async fn get(address: SocketAddr, megabytes: u64) -> Result<(), Failed> {
    let endpoint = client(address, keys::APPLICATION)?;
    let connection = endpoint.connect(address, keys::NAME)?.await?;
    let (send, receive) = connection.open_bi().await?;
    ask(receive, send, megabytes).await?;
    connection.close(DONE, b"");
    send_close().await;
    Ok(())
}

/// Lets the tasks of a closed connection run once more, which send its last packet.
///
/// [`Endpoint::wait_idle`] would also wait in case the server has not got that packet: three probe timeouts, at least
/// 75 ms, which no other protocol here waits and which would be part of the client's time. A server that does not get
/// it forgets the connection after its idle timeout.
pub(crate) async fn send_close() {
    for _ in 0..TURNS_TO_CLOSE {
        yield_now().await;
    }
}

/// A client for servers of this protocol.
pub(crate) fn client(server: SocketAddr, application: &[u8]) -> Result<Endpoint, Failed> {
    let own: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let mut endpoint = Endpoint::client(SocketAddr::new(own, 0))?;
    let crypto = QuicClientConfig::try_from(keys::configure_client(application)?)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW_BYTES.into()).receive_window(WINDOW_BYTES.into());
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use tokio::runtime::{Builder, Runtime};

    /// Three probe timeouts of a connection to this host, whose peer may wait 25 ms before it acknowledges.
    const CLOSE_TIMER: Duration = Duration::from_millis(75);
    /// Other programs may delay each of these clients.
    const TRIES: usize = 20;

    fn build_runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// Runs a client as the program does, whose sockets are closed when it has ended, and gives how long that took.
    fn run_client(address: SocketAddr) -> Duration {
        let began = Instant::now();
        build_runtime().block_on(get(address, 1)).unwrap();
        began.elapsed()
    }

    #[test]
    fn client_ends_at_once_and_server_hears_of_it() {
        let runtime = build_runtime();
        let listening = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let endpoint = runtime.block_on(async { listen(listening) }).unwrap();
        let address = endpoint.local_addr().unwrap();
        let mut shortest = Duration::MAX;
        for _ in 0..TRIES {
            let client = std::thread::spawn(move || run_client(address));
            let ended = runtime.block_on(async {
                let incoming = endpoint.accept().await.unwrap();
                tokio::time::timeout(Duration::from_secs(10), serve_one(incoming)).await
            });
            let ended = ended.expect("it hears of the end before its idle timeout");
            assert!(matches!(ended, Ok(ConnectionError::ApplicationClosed(_))), "{ended:?}");
            shortest = shortest.min(client.join().unwrap());
            if shortest < CLOSE_TIMER {
                return;
            }
        }
        panic!("each client took longer than {shortest:?}");
    }
}

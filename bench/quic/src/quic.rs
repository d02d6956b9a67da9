//! QUIC.

use crate::http::WINDOW_BYTES;
use crate::{Failed, answer, ask, keys};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, Incoming, ServerConfig, TransportConfig, VarInt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// A connection that has ended well.
const DONE: VarInt = VarInt::from_u32(0);

pub(crate) async fn serve(address: SocketAddr) -> Result<(), Failed> {
    let crypto = QuicServerConfig::try_from(keys::of_server()?)?;
    let endpoint = Endpoint::server(ServerConfig::with_crypto(Arc::new(crypto)), address)?;
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

async fn serve_one(incoming: Incoming) -> Result<(), Failed> {
    let connection = incoming.await?;
    let (send, receive) = connection.accept_bi().await?;
    answer(receive, send).await?;
    // What was sent is under way: the client closes when it has all of it.
    connection.closed().await;
    Ok(())
}

pub(crate) async fn get(address: SocketAddr, megabytes: u64) -> Result<(), Failed> {
    let endpoint = client(address, keys::APPLICATION)?;
    let connection = endpoint.connect(address, keys::NAME)?.await?;
    let (send, receive) = connection.open_bi().await?;
    ask(receive, send, megabytes).await?;
    connection.close(DONE, b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// A client for servers of this protocol.
pub(crate) fn client(server: SocketAddr, application: &[u8]) -> Result<Endpoint, Failed> {
    let own: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let mut endpoint = Endpoint::client(SocketAddr::new(own, 0))?;
    let crypto = QuicClientConfig::try_from(keys::of_client(application)?)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW_BYTES.into()).receive_window(WINDOW_BYTES.into());
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

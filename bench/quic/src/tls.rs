//! TLS over TCP.

use crate::{Failed, answer, ask, keys};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::split;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub(crate) async fn serve(address: SocketAddr) -> Result<(), Failed> {
    let acceptor = TlsAcceptor::from(Arc::new(keys::configure_server()?));
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, client) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Err(error) = serve_one(&acceptor, stream).await {
                println!("stacklab-quic: tls {client}: {error}");
            }
        });
    }
}

async fn serve_one(acceptor: &TlsAcceptor, stream: TcpStream) -> Result<(), Failed> {
    stream.set_nodelay(true)?;
    let (from, to) = split(acceptor.accept(stream).await?);
    answer(from, to).await
}

pub(crate) async fn get(address: SocketAddr, megabytes: u64) -> Result<(), Failed> {
    let (from, to) = split(connect(address, keys::APPLICATION).await?);
    ask(from, to, megabytes).await
}

/// A connection with a server that speaks this protocol.
pub(crate) async fn connect(
    address: SocketAddr,
    application: &'static [u8],
) -> Result<TlsStream<TcpStream>, Failed> {
    let connector = TlsConnector::from(Arc::new(keys::configure_client(application)?));
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let stream = connector.connect(ServerName::try_from(keys::NAME)?, stream).await?;
    if stream.get_ref().1.alpn_protocol() != Some(application) {
        return Err(format!("the server does not speak {}", String::from_utf8_lossy(application)).into());
    }
    Ok(stream)
}

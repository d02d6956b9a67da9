//! HTTPS: the server's side of TLS, with a certificate of the throwaway authority.

use crate::network::authority::Credentials;
use crate::network::http::{answer, read_request};
use rustls::crypto::ring::default_provider;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// What connections of TLS are made from, and the authority that clients have to trust.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ServerConfig>,
    /// The authority's certificate as PEM.
    pub authority: String,
}

impl Tls {
    /// With new keys.
    pub(super) fn generate() -> io::Result<Tls> {
        let credentials = Credentials::generate();
        let credentials = credentials.map_err(|_| io::Error::other("a key could not be made"))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(credentials.chain, credentials.key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), authority: credentials.authority })
    }

    /// Answers the request of a connection.
    pub(super) fn serve(&self, stream: impl Read + Write) -> io::Result<()> {
        let session = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, stream);
        let request = read_request(&mut stream)?;
        stream.write_all(&answer(&request))?;
        stream.conn.send_close_notify();
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// What a client that trusts the authority reads from the server of this name.
    fn fetch(tls: &Tls, name: &'static str) -> io::Result<Vec<u8>> {
        let [client, server] = <[UnixStream; 2]>::from(UnixStream::pair()?);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(tls.authority.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        thread::scope(|scope| {
            scope.spawn(|| tls.serve(server));
            let session = ClientConnection::new(Arc::new(config), name.try_into().unwrap()).unwrap();
            let mut stream = StreamOwned::new(session, client);
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
            let mut page = Vec::new();
            stream.read_to_end(&mut page)?;
            Ok(page)
        })
    }

    #[test]
    fn a_client_that_trusts_the_authority_is_served() {
        let tls = Tls::generate().unwrap();
        assert!(fetch(&tls, "r1-0.eyeballs.test").unwrap().starts_with(b"HTTP/1.1 200"));
        let refused = fetch(&tls, "example.org").unwrap_err();
        assert!(refused.to_string().contains("not valid for name"), "{refused}");
    }
}

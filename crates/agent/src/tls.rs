//! TLS 1.3 between a coordinator and a listening agent. The agent shows a raw public key (RFC 7250) in place of a
//! certificate; the coordinator has that key's fingerprint, and accepts no other.

use crate::channel::{Channel, TAKE_LIMIT, is_wait, wait_until};
use crate::hex::{bytes, hex};
use crate::key;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error,
    PeerIncompatible, ServerConfig, ServerConnection, SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

/// The first byte of a TLS connection: the type of a record of the handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;
/// What stands before the 32 bytes of an Ed25519 key in its PKCS #8 form (RFC 8410, 7).
const PKCS8_OF_ED25519: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
const KNOWN: &str = "this provider has TLS 1.3";

/// The SHA-256 of an agent's public key in its SPKI form (RFC 7469, 2.4), written as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(public_key: &[u8]) -> Self {
        Fingerprint(Sha256::digest(public_key).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digest = bytes(text).and_then(|bytes| bytes.try_into().ok());
        digest.map(Fingerprint).ok_or("expected the 64 hexadecimal digits that the agent printed".to_owned())
    }
}

/// Why there is no TLS session with the peer.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// What listens there answers in plain.
    #[error("it does not speak TLS: start it with --tls, and pass its fingerprint to --tls here")]
    Plain,
    /// Its key has another fingerprint. Nothing was sent to it.
    #[error(
        "its key is not the one of --tls: another program answers there, or the agent was restarted (--tls-key FILE keeps its key)"
    )]
    OtherKey,
    /// The handshake failed.
    #[error("TLS 1.3 handshake failed: {0}")]
    Handshake(Error),
    /// The connection ended, or the handshake took too long.
    #[error("{0}")]
    Connection(#[from] io::Error),
}

/// An agent's key pair.
pub struct Identity {
    config: Arc<ServerConfig>,
    /// What coordinators know it by.
    pub fingerprint: Fingerprint,
}

impl Identity {
    /// A new key pair, for as long as this process lives.
    pub fn generate() -> Self {
        Self::of(&new_key()).expect("a key of 32 bytes is a key")
    }

    /// The key pair of a file (PEM, PKCS #8), which is made if it is missing, for its owner only.
    pub fn read_or_create(path: &Path) -> Result<Self, String> {
        let failed = |reason: String| format!("could not use the TLS key in {}: {reason}", path.display());
        let text = key::read_or_create_text(path, new_key).map_err(|error| failed(error.to_string()))?;
        Self::of(&text).map_err(failed)
    }

    fn of(pem: &str) -> Result<Self, String> {
        let private = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(advise_removal)?;
        let signing = ring::sign::any_supported_type(&private).map_err(advise_removal)?;
        let public = signing.public_key().ok_or_else(|| advise_removal("it has no public key"))?.to_vec();
        let fingerprint = Fingerprint::of(&public);
        let own = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], signing));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect(KNOWN)
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
        // Every connection has a separate handshake.
        config.send_tls13_tickets = 0;
        Ok(Identity { config: Arc::new(config), fingerprint })
    }

    /// The agent's side of a handshake that ends before the deadline.
    pub fn accept(&self, stream: TcpStream, deadline: Instant) -> Result<Channel, TlsError> {
        let session = ServerConnection::new(Arc::clone(&self.config)).map_err(TlsError::Handshake)?;
        shake_hands(stream, session.into(), deadline)
    }
}

fn advise_removal(error: impl fmt::Display) -> String {
    format!("{error}; remove it to have a new one created")
}

/// Whether a peer's first byte, which comes before the deadline, begins a TLS handshake; `None` if it has gone. The
/// byte stays there.
pub fn begins(stream: &TcpStream, deadline: Instant) -> io::Result<Option<bool>> {
    let mut first = [0];
    wait_until(stream, deadline)?;
    let count = stream.peek(&mut first)?;
    Ok((count > 0).then_some(first[0] == HANDSHAKE))
}

/// The coordinator's side of a handshake that ends before the deadline, with the agent of this fingerprint and no
/// other.
pub fn secure(stream: TcpStream, to: Fingerprint, deadline: Instant) -> Result<Channel, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .expect(KNOWN)
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { to, provider }))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    // It is known by its key: the name is in no message.
    config.enable_sni = false;
    let name = ServerName::from(stream.peer_addr()?.ip());
    let session = ClientConnection::new(Arc::new(config), name).map_err(TlsError::Handshake)?;
    shake_hands(stream, session.into(), deadline)
}

fn shake_hands(stream: TcpStream, mut session: Connection, deadline: Instant) -> Result<Channel, TlsError> {
    stream.set_write_timeout(Some(TAKE_LIMIT))?;
    loop {
        while session.wants_write() {
            session.write_tls(&mut &stream)?;
        }
        if !session.is_handshaking() {
            return Ok(Channel::inside(stream, session));
        }
        wait_until(&stream, deadline)?;
        match session.read_tls(&mut &stream) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Err(error) if !is_wait(&error) => return Err(error.into()),
            _ => {}
        }
        if let Err(error) = session.process_new_packets() {
            // The alert that tells the peer.
            let _ = session.write_tls(&mut &stream);
            return Err(match error {
                Error::InvalidMessage(_) => TlsError::Plain,
                Error::InvalidCertificate(_) => TlsError::OtherKey,
                error => TlsError::Handshake(error),
            });
        }
    }
}

/// Accepts the key of one fingerprint.
#[derive(Debug)]
struct Pinned {
    to: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        public_key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Fingerprint::of(public_key) == self.to {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        public_key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let public_key = SubjectPublicKeyInfoDer::from(&**public_key);
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &public_key, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// A new Ed25519 key, as its file has it: what `openssl genpkey -algorithm ed25519` writes, too.
fn new_key() -> String {
    let mut der = PKCS8_OF_ED25519.to_vec();
    der.extend(key::random::<32>());
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

#[cfg(test)]
mod tests;

//! Certificates of servers: trusted by an authority of the system's store, or the server's own in that store.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::io;
use std::sync::Arc;

/// What rustls calls a certificate of an authority that a server uses as its own.
const OWN_AUTHORITY: &str = "CaUsedAsEndEntity";

/// TLS with the system's certificates, or those of SSL_CERT_FILE and SSL_CERT_DIR.
pub(crate) fn configure_tls() -> Result<Arc<ClientConfig>, String> {
    let read = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(read.certs.iter().cloned());
    if roots.is_empty() {
        let reasons: Vec<String> = read.errors.iter().map(ToString::to_string).collect();
        let reasons = if reasons.is_empty() { "there are none".to_owned() } else { reasons.join("; ") };
        return Err(format!(
            "no certificate of an authority can be read from the system's store, or SSL_CERT_FILE and SSL_CERT_DIR: {reasons}"
        ));
    }
    let inner = WebPkiServerVerifier::builder(Arc::new(roots)).build().map_err(|error| error.to_string())?;
    let verifier = Arc::new(Verifier { inner, trusted: read.certs });
    Ok(Arc::new(
        ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(),
    ))
}

#[derive(Debug)]
struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(own, chain, name, ocsp, now);
        match &verified {
            // A server's own certificate in the store is trusted, as by other programs. These two errors come after its
            // dates were checked, and before its name.
            Err(Error::InvalidCertificate(error)) if lacks_issuer(error) && self.trusted.contains(own) => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

fn lacks_issuer(error: &CertificateError) -> bool {
    matches!(error, CertificateError::UnknownIssuer) || is_own_authority(error)
}

fn is_own_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.0.to_string() == OWN_AUTHORITY)
}

/// Why the certificate of a server is refused, if that is the error.
pub(crate) fn describe_refusal(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let Error::InvalidCertificate(error) = error else { return None };
    const STORE: &str = "put it into the file that SSL_CERT_FILE names, to accept it";
    Some(match error {
        CertificateError::UnknownIssuer => format!(
            "the certificate of its issuer is not in the system's store, or in SSL_CERT_FILE and SSL_CERT_DIR: {STORE}"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired, by the clock of this host".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet, by the clock of this host".to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented = if presented.is_empty() { "no name".to_owned() } else { presented.join(", ") };
            format!("its certificate is not for {}, but for {presented}", expected.to_str())
        }
        CertificateError::Revoked => "its certificate is revoked".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not one of a server".to_owned()
        }
        error if is_own_authority(error) => {
            format!("its certificate is its own authority (self-signed): {STORE}")
        }
        other => format!("its certificate is refused ({other:?})"),
    })
}

//! Certificates of servers: trusted by an authority of the system's store, or the server's own in that store.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_native_certs::{CertificateResult, ErrorKind};
use stacklab_traffic::host::files::wait_for_user;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The variable that names a file of certificates.
const FILE: &str = "SSL_CERT_FILE";
/// What rustls calls a certificate of an authority that a server uses as its own.
const OWN_AUTHORITY: &str = "CaUsedAsEndEntity";

/// TLS with the system's certificates, or those of SSL_CERT_FILE and SSL_CERT_DIR. An error is this host's fault: no
/// server can be judged.
pub(crate) fn configure_tls() -> Result<Arc<ClientConfig>, String> {
    // The variables may name a pipe.
    let read = wait_for_user(rustls_native_certs::load_native_certs);
    configure_with(read, env::var_os(FILE).map(PathBuf::from).as_deref())
}

/// As [`configure_tls`], by these certificates. `file` is the one that the user named.
fn configure_with(read: CertificateResult, file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    if let Some(reason) = file.and_then(|file| find_read_error(&read, file)) {
        return Err(format!(
            "could not read the certificates of authorities: {reason}. Name a readable file of PEM certificates in {FILE}, or unset it"
        ));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(read.certs.iter().cloned());
    if roots.is_empty() {
        let mut reasons: Vec<String> = read.errors.iter().map(ToString::to_string).collect();
        if reasons.is_empty() {
            reasons
                .push(file.map_or("there are none".to_owned(), |file| format!("none in {}", file.display())));
        }
        return Err(format!(
            "no certificate of an authority can be read from the system's store, or {FILE} and SSL_CERT_DIR: {}. Install the \
             authorities' certificates (ca-certificates), or name a file of them in {FILE}",
            reasons.join("; ")
        ));
    }
    let inner = WebPkiServerVerifier::builder(Arc::new(roots)).build().map_err(|error| error.to_string())?;
    let verifier = Arc::new(Verifier { inner, trusted: read.certs });
    Ok(Arc::new(
        ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(),
    ))
}

/// Why this file could not be read, with its name.
fn find_read_error(read: &CertificateResult, file: &Path) -> Option<String> {
    read.errors.iter().find_map(|error| match &error.kind {
        ErrorKind::Io { inner, path } if path == file => Some(format!("{}: {inner}", file.display())),
        _ => None,
    })
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

pub(crate) fn is_own_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.0.to_string() == OWN_AUTHORITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_native_certs::load_certs_from_paths;

    #[test]
    fn unreadable_certificates_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent.pem");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "").unwrap();
        for (file, reason) in [(&absent, "absent.pem: No such file"), (&empty, "none in ")] {
            let read = load_certs_from_paths(Some(file), None);
            let error = configure_with(read, Some(file)).unwrap_err();
            assert!(error.contains(reason) && error.contains("SSL_CERT_FILE"), "{error}");
        }
        // The file is wrong, whatever a folder has.
        let mut read = load_certs_from_paths(Some(&absent), None);
        read.certs.push(CertificateDer::from(vec![0x30, 0]));
        assert!(configure_with(read, Some(&absent)).unwrap_err().contains("absent.pem"));
    }
}

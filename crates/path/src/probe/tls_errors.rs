//! Errors of TLS and of certificates, in words of the field and not in those of the library.

use crate::probe::certificates::is_own_authority;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};
use std::io;

/// Names of a certificate that are listed: those of content networks have a hundred.
const MAX_NAMES: usize = 5;
const STORE: &str = "put it into the file that SSL_CERT_FILE names, to accept it";

/// Why a server cannot be spoken with over TLS, if that is the error.
pub(crate) fn describe_tls_error(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(error) => describe_certificate_error(error),
        Error::AlertReceived(alert) => describe_alert(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "its answer is not TLS: if the port serves plain HTTP, name it with http://".to_owned()
        }
        Error::InvalidMessage(reason) => format!("a message is malformed ({})", spell(reason)),
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "it supports neither TLS 1.2 nor TLS 1.3".to_owned()
        }
        Error::PeerIncompatible(reason) => format!("it is not compatible ({})", spell(reason)),
        Error::PeerMisbehaved(reason) => format!("it violates the protocol ({})", spell(reason)),
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "a message came out of order".to_owned()
        }
        Error::NoCertificatesPresented => "it sent no certificate".to_owned(),
        Error::DecryptError => "a message cannot be decrypted".to_owned(),
        Error::PeerSentOversizedRecord => "a record is longer than TLS allows".to_owned(),
        Error::InvalidCertRevocationList(_) => "a list of revoked certificates is not valid".to_owned(),
        Error::General(reason) => reason.clone(),
        Error::Other(reason) => spell(&reason.0),
        other => other.to_string(),
    })
}

fn describe_certificate_error(error: &CertificateError) -> String {
    match error {
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
            format!("its certificate is not for {}, but for {}", expected.to_str(), list_names(presented))
        }
        CertificateError::Revoked => "its certificate is revoked".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not one of a server".to_owned()
        }
        CertificateError::BadEncoding => "its certificate is malformed (X.509, RFC 5280)".to_owned(),
        CertificateError::BadSignature => {
            "a signature is wrong, of a certificate in its chain or of the handshake".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "a certificate in its chain, or the handshake, is signed in a way that is not supported, such as with SHA-1"
                .to_owned()
        }
        error if is_own_authority(error) => {
            format!("its certificate is its own authority (self-signed): {STORE}")
        }
        CertificateError::Other(reason) => describe_chain_error(&reason.0.to_string()),
        other => format!("its certificate is refused ({})", spell(other)),
    }
}

/// Errors of checking a chain of certificates, by their names in the library: rustls has no variant for them.
fn describe_chain_error(name: &str) -> String {
    let text = match name {
        "EndEntityUsedAsCa" => {
            "a certificate in its chain is used as an authority's and is not one (basic constraints)"
        }
        "UnsupportedCertVersion" => {
            "a certificate in its chain is not of X.509 version 3: issue it anew, with a subjectAltName"
        }
        "UnsupportedCriticalExtension" => {
            "a certificate in its chain has a critical extension that is not supported"
        }
        "NameConstraintViolation" => "an authority in its chain may not certify this name (name constraints)",
        "PathLenConstraintViolated" => "its chain of certificates is longer than an authority in it allows",
        "CertDistrusted" => "a certificate in its chain is distrusted",
        name if name.starts_with("Maximum") => {
            "its chain of certificates is too long or too complex to check"
        }
        _ => return format!("a certificate in its chain is refused ({})", spell(name)),
    };
    text.to_owned()
}

/// An alert by its name in RFC 8446, and what it means where that is known.
fn describe_alert(alert: AlertDescription) -> String {
    let name = match alert {
        AlertDescription::Unknown(number) => format!("alert {number}"),
        AlertDescription::UnrecognisedName => "alert unrecognized_name".to_owned(),
        alert => format!("alert {}", split_words(&format!("{alert:?}")).join("_").to_lowercase()),
    };
    let meaning = match alert {
        AlertDescription::HandshakeFailure => {
            ": no common version or cipher suite, or it wants a certificate of the client"
        }
        AlertDescription::ProtocolVersion => ": it supports neither TLS 1.2 nor TLS 1.3",
        AlertDescription::UnrecognisedName => ": it does not serve this name",
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            ": it wants a certificate of the client, which this program does not have"
        }
        _ => "",
    };
    format!("it refused ({name}{meaning})")
}

/// The names that a certificate is for, which the library writes with their kinds: `DnsName("a.example")`.
fn list_names(presented: &[String]) -> String {
    if presented.is_empty() {
        return "no name".to_owned();
    }
    let mut names: Vec<String> = presented.iter().take(MAX_NAMES).map(|name| name_alone(name)).collect();
    if let more @ 1.. = presented.len() - names.len() {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

fn name_alone(presented: &str) -> String {
    let inside = presented.split_once('(').and_then(|(kind, rest)| Some((kind, rest.strip_suffix(')')?)));
    match inside {
        Some(("DnsName" | "IpAddress" | "UniformResourceIdentifier", name)) => {
            name.trim_matches('"').to_owned()
        }
        Some(("Unsupported", _)) => "a name of another kind".to_owned(),
        _ if presented == "DirectoryName" => "the name of a directory".to_owned(),
        _ => presented.to_owned(),
    }
}

/// The name of an error in the library as words, without what belongs to it: `NoCipherSuitesInCommon`.
fn spell(error: impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let name = text.trim_matches('"').split(['(', ' ', '{']).next().unwrap_or_default();
    let words: Vec<String> = split_words(name).into_iter().map(spell_word).collect();
    words.join(" ")
}

fn spell_word(word: &str) -> String {
    match word {
        "Tls12" => "TLS 1.2".to_owned(),
        "Tls13" => "TLS 1.3".to_owned(),
        "Kx" => "key exchange".to_owned(),
        "Ccs" => "ChangeCipherSpec".to_owned(),
        "Ec" | "Psk" | "Ech" | "Sct" | "Ca" | "Eku" | "Dns" | "Dh" | "Ems" => word.to_uppercase(),
        _ => word.to_lowercase(),
    }
}

/// The words of a name such as `UnknownPSKIdentity`: each begins with a capital letter, and abbreviations are whole.
fn split_words(name: &str) -> Vec<&str> {
    let bytes = name.as_bytes();
    let mut words = Vec::new();
    let mut begin = 0;
    for at in 1..bytes.len() {
        let follows_capital = bytes[at - 1].is_ascii_uppercase();
        let precedes_small = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if bytes[at].is_ascii_uppercase() && (!follows_capital || precedes_small) {
            words.push(&name[begin..at]);
            begin = at;
        }
    }
    words.push(&name[begin..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::ServerName;
    use rustls::{OtherError, PeerMisbehaved};
    use std::sync::Arc;

    fn describe(error: Error) -> String {
        describe_tls_error(&io::Error::other(error)).unwrap()
    }

    fn describe_names(presented: &[&str]) -> String {
        describe(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("h.example").unwrap(),
            presented: presented.iter().map(|name| (*name).to_owned()).collect(),
        }))
    }

    #[test]
    fn names_of_a_certificate_are_as_people_write_them() {
        let text = describe_names(&["DnsName(\"other.example\")", "IpAddress(192.0.2.1)"]);
        assert_eq!(text, "its certificate is not for h.example, but for other.example, 192.0.2.1");
        let text =
            describe_names(&["UniformResourceIdentifier(\"urn:x\")", "DirectoryName", "Unsupported(0xa0)"]);
        assert!(text.ends_with("but for urn:x, the name of a directory, a name of another kind"), "{text}");
        let many = describe_names(&["DnsName(\"a.example\")"; 100]);
        assert!(many.ends_with("a.example, a.example, 95 more"), "{many}");
        assert!(describe_names(&[]).ends_with("but for no name"));
    }

    #[test]
    fn errors_of_the_chain_are_in_words() {
        for (name, text) in [
            ("CaUsedAsEndEntity", "its own authority (self-signed)"),
            ("EndEntityUsedAsCa", "used as an authority's and is not one"),
            ("UnsupportedCertVersion", "not of X.509 version 3"),
            ("MaximumPathDepthExceeded", "too long or too complex"),
            ("MalformedExtensions", "refused (malformed extensions)"),
            ("InvalidSerialNumber", "refused (invalid serial number)"),
        ] {
            let reason = Arc::new(io::Error::other(name));
            let described = describe(Error::InvalidCertificate(CertificateError::Other(OtherError(reason))));
            assert!(described.contains(text), "{described}");
        }
    }

    #[test]
    fn errors_of_tls_are_in_words() {
        for (error, text) in [
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "its answer is not TLS"),
            (Error::InvalidMessage(InvalidMessage::MissingData("u8")), "malformed (missing data)"),
            (
                Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
                "it supports neither TLS 1.2 nor TLS 1.3",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon),
                "(no key exchange groups in common)",
            ),
            (
                Error::PeerMisbehaved(PeerMisbehaved::SelectedTls12UsingTls13VersionExtension),
                "(selected TLS 1.2 using TLS 1.3 version extension)",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "it refused (alert handshake_failure: no ",
            ),
            (Error::AlertReceived(AlertDescription::UnknownCA), "it refused (alert unknown_ca)"),
            (Error::AlertReceived(AlertDescription::UnknownPSKIdentity), "(alert unknown_psk_identity)"),
            (
                Error::AlertReceived(AlertDescription::UnrecognisedName),
                "(alert unrecognized_name: it does not",
            ),
            (Error::AlertReceived(AlertDescription::Unknown(200)), "(alert 200)"),
            (
                Error::InvalidCertificate(CertificateError::UnknownRevocationStatus),
                "its certificate is refused (unknown revocation status)",
            ),
        ] {
            let described = describe(error);
            assert!(described.contains(text), "{described}");
        }
        assert_eq!(describe_tls_error(&io::Error::from(io::ErrorKind::TimedOut)), None);
    }
}

//! A certificate authority that lives as long as a measurement, and the certificate of the server (RFC 5280).
//!
//! The certificate has a comment of 2 kB: the server's first flight then has packets of full size, as those of real
//! servers, so that a black hole for large packets stops the handshake.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::error::Unspecified;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The names that the server has.
const SERVER_NAMES: &str = "*.eyeballs.test";
const AUTHORITY_NAME: &str = "stacklab eyeballs";
/// Any date of now: the keys live as long as a measurement.
const VALID_FROM: &[u8] = b"200101000000Z";
const VALID_TO: &[u8] = b"491231235959Z";
const COMMENT: usize = 2_000;
const PEM_LINE: usize = 64;

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_KEY: &[u8] = &[0x55, 0x1d, 0x0e];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const NETSCAPE_COMMENT: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x01, 0x0d];

/// The authority's certificate, and the server's with its key.
pub struct Credentials {
    /// The authority's certificate as PEM.
    pub authority: String,
    /// The server's certificate and the authority's.
    pub chain: Vec<CertificateDer<'static>>,
    /// The server's key.
    pub key: PrivateKeyDer<'static>,
}

impl Credentials {
    /// New keys and certificates.
    pub fn generate() -> Result<Credentials, Unspecified> {
        let random = SystemRandom::new();
        let authority = CertificateKey::generate(&random)?;
        let server = CertificateKey::generate(&random)?;
        let key_id = authority.id();
        let authority_extensions = [
            extension(BASIC_CONSTRAINTS, true, &der(SEQUENCE, &[&der(BOOLEAN, &[&[0xff]])])),
            // Signs certificates.
            extension(KEY_USAGE, true, &der(BIT_STRING, &[&[2, 0x04]])),
            extension(SUBJECT_KEY, false, &der(OCTET_STRING, &[&key_id])),
        ];
        let own =
            Subject { name: AUTHORITY_NAME, key: &authority, extensions: &authority_extensions, serial: 1 };
        let root = own.sign(&authority, &random)?;
        let server_extensions = [
            extension(ALTERNATIVE_NAMES, false, &der(SEQUENCE, &[&der(0x82, &[SERVER_NAMES.as_bytes()])])),
            // Signs handshakes.
            extension(KEY_USAGE, true, &der(BIT_STRING, &[&[7, 0x80]])),
            extension(EXTENDED_USAGE, false, &der(SEQUENCE, &[&der(OBJECT, &[SERVER_AUTH])])),
            extension(SUBJECT_KEY, false, &der(OCTET_STRING, &[&server.id()])),
            extension(AUTHORITY_KEY, false, &der(SEQUENCE, &[&der(0x80, &[&key_id])])),
            extension(NETSCAPE_COMMENT, false, &der(IA5_STRING, &[&[b'.'; COMMENT]])),
        ];
        let of_server =
            Subject { name: SERVER_NAMES, key: &server, extensions: &server_extensions, serial: 2 };
        let leaf = of_server.sign(&authority, &random)?;
        Ok(Credentials {
            authority: encode_pem(&root),
            chain: vec![leaf.into(), root.into()],
            key: PrivatePkcs8KeyDer::from(server.pkcs8).into(),
        })
    }
}

struct CertificateKey {
    pkcs8: Vec<u8>,
    pair: EcdsaKeyPair,
}

impl CertificateKey {
    fn generate(random: &SystemRandom) -> Result<CertificateKey, Unspecified> {
        let kind = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, random)?.as_ref().to_vec();
        let pair = EcdsaKeyPair::from_pkcs8(kind, &pkcs8, random).map_err(|_| Unspecified)?;
        Ok(CertificateKey { pkcs8, pair })
    }

    fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// What certificates call it.
    fn id(&self) -> Vec<u8> {
        digest(&SHA256, self.public()).as_ref()[..20].to_vec()
    }
}

/// Whom a certificate is for.
struct Subject<'a> {
    name: &'a str,
    key: &'a CertificateKey,
    extensions: &'a [Vec<u8>],
    serial: u8,
}

impl Subject<'_> {
    /// The certificate, signed by the authority.
    fn sign(&self, authority: &CertificateKey, random: &SystemRandom) -> Result<Vec<u8>, Unspecified> {
        let algorithm = der(SEQUENCE, &[&der(OBJECT, &[ECDSA_WITH_SHA256])]);
        let key_algorithm = der(SEQUENCE, &[&der(OBJECT, &[EC_PUBLIC_KEY]), &der(OBJECT, &[PRIME256V1])]);
        let content = der(
            SEQUENCE,
            &[
                // Version 3.
                &der(0xa0, &[&der(INTEGER, &[&[2]])]),
                &der(INTEGER, &[&[self.serial]]),
                &algorithm,
                &encode_name(AUTHORITY_NAME),
                &der(SEQUENCE, &[&der(UTC_TIME, &[VALID_FROM]), &der(UTC_TIME, &[VALID_TO])]),
                &encode_name(self.name),
                &der(SEQUENCE, &[&key_algorithm, &der(BIT_STRING, &[&[0], self.key.public()])]),
                &der(0xa3, &[&der(SEQUENCE, &[&self.extensions.concat()])]),
            ],
        );
        let signature = authority.pair.sign(random, &content)?;
        Ok(der(SEQUENCE, &[&content, &algorithm, &der(BIT_STRING, &[&[0], signature.as_ref()])]))
    }
}

fn encode_name(name: &str) -> Vec<u8> {
    let attribute = der(SEQUENCE, &[&der(OBJECT, &[COMMON_NAME]), &der(UTF8_STRING, &[name.as_bytes()])]);
    der(SEQUENCE, &[&der(SET, &[&attribute])])
}

fn extension(kind: &[u8], is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if is_critical { der(BOOLEAN, &[&[0xff]]) } else { Vec::new() };
    der(SEQUENCE, &[&der(OBJECT, &[kind]), &critical, &der(OCTET_STRING, &[value])])
}

/// A value of DER (X.690): tag, length and content.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    let mut value = vec![tag];
    if length < 0x80 {
        value.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
        value.push(0x80 | (bytes.len() - first) as u8);
        value.extend(&bytes[first..]);
    }
    value.extend(content);
    value
}

fn encode_pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(PEM_LINE) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_der() {
        assert_eq!(der(OCTET_STRING, &[&[1, 2], &[3]]), [4, 3, 1, 2, 3]);
        assert_eq!(der(OCTET_STRING, &[&[0; 200]])[..3], [4, 0x81, 200]);
        assert_eq!(der(OCTET_STRING, &[&[0; 2_000]])[..4], [4, 0x82, 7, 0xd0]);
    }
}

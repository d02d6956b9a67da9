//! The key of authenticated test packets, and their code.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;

/// Bytes of the authentication code: HMAC-SHA-256, cut.
pub(super) const CODE_BYTES: usize = 16;
const MIN_BYTES: usize = 16;

/// A key that both ends share. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct StampKey(Vec<u8>);

impl StampKey {
    /// Reads a key from hexadecimal digits; space around them is ignored. `None` if it is too short.
    pub fn from_hex(text: &str) -> Option<Self> {
        let (pairs, []) = text.trim().as_bytes().as_chunks::<2>() else { return None };
        let bytes = pairs.iter().map(|[high, low]| Some(read_digit(*high)? << 4 | read_digit(*low)?));
        let key: Vec<u8> = bytes.collect::<Option<_>>()?;
        (key.len() >= MIN_BYTES).then_some(StampKey(key))
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    pub(super) fn code(&self, parts: &[&[u8]]) -> [u8; CODE_BYTES] {
        let whole = self.mac(parts).finalize().into_bytes();
        std::array::from_fn(|place| whole[place])
    }

    /// Whether a code is that of these bytes; takes the same time for each wrong one.
    pub(super) fn proves(&self, parts: &[&[u8]], code: &[u8]) -> bool {
        code.len() == CODE_BYTES && self.mac(parts).verify_truncated_left(code).is_ok()
    }
}

fn read_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

impl fmt::Debug for StampKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hexadecimal_and_not_short() {
        let key = StampKey::from_hex(" 000102030405060708090A0b0c0d0e0f\n").unwrap();
        assert_eq!(key, StampKey((0..16).collect()));
        assert_eq!(format!("{key:?}"), "Key");
        for wrong in ["", "00", "000102030405060708090a0b0c0d0e", "0001020304050607-8090a0b0c0d0e0f", "000"] {
            assert_eq!(StampKey::from_hex(wrong), None, "{wrong}");
        }
    }

    /// Test case 1 of RFC 4231, cut to 16 bytes.
    #[test]
    fn the_code_is_hmac_sha_256_cut_to_16_bytes() {
        let key = StampKey(vec![0x0b; 20]);
        let expected =
            [0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b];
        assert_eq!(key.code(&[b"Hi ", b"There"]), expected);
        assert!(key.proves(&[b"Hi There"], &expected));
        assert!(!key.proves(&[b"Hi there"], &expected));
        assert!(!key.proves(&[b"Hi There"], &expected[..15]));
        assert!(!key.proves(&[b"Hi There"], &[]));
    }
}

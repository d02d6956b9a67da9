//! The cookie: what streams of a test are known by.

use std::fmt;

/// Letters of a cookie.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Bytes of a cookie, with the zero at its end.
pub const COOKIE_BYTES: usize = 37;

/// 36 letters and a zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// The cookie of random bytes.
    pub fn of(random: [u8; COOKIE_BYTES - 1]) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for (letter, random) in bytes.iter_mut().zip(random) {
            *letter = LETTERS[usize::from(random) % LETTERS.len()];
        }
        Cookie(bytes)
    }

    /// A cookie as received: of any bytes, since only equality counts.
    pub fn received(bytes: [u8; COOKIE_BYTES]) -> Self {
        Cookie(bytes)
    }

    /// As sent.
    pub fn bytes(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Cookie {
    /// Not shown: it lets streams into the test.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_of_base_32_letters_and_ends_with_a_zero() {
        let cookie = Cookie::of(std::array::from_fn(|place| (place * 7) as u8));
        assert!(cookie.bytes()[..36].iter().all(|letter| LETTERS.contains(letter)));
        assert_eq!(cookie.bytes()[36], 0);
        assert_eq!(Cookie::received(*cookie.bytes()), cookie);
    }
}

//! Text of files that people and tools write, in the encodings of editors and shells.

use std::borrow::Cow;
use std::io;

/// Bytes that are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText {
    /// The first byte that is not part of text, from 0.
    pub at: usize,
    /// Whether the file is in UTF-16; otherwise it would have to be UTF-8.
    pub is_wide: bool,
}

/// The text of a file: UTF-8 or UTF-16, with a byte order mark or without one, as PowerShell and editors write it.
///
/// # Errors
/// With the first byte that is not text.
pub fn read_text(bytes: &[u8]) -> Result<Cow<'_, str>, NotText> {
    match bytes {
        [0xff, 0xfe, ..] => decode_utf16(bytes, 2, u16::from_le_bytes),
        [0xfe, 0xff, ..] => decode_utf16(bytes, 2, u16::from_be_bytes),
        // Without a byte order mark: text of tools begins with letters of ASCII.
        [1..=255, 0, 1..=255, 0, ..] => decode_utf16(bytes, 0, u16::from_le_bytes),
        [0, 1..=255, 0, 1..=255, ..] => decode_utf16(bytes, 0, u16::from_be_bytes),
        _ => {
            let mark = if bytes.starts_with(&[0xef, 0xbb, 0xbf]) { 3 } else { 0 };
            let text = std::str::from_utf8(&bytes[mark..]);
            text.map(Cow::Borrowed)
                .map_err(|error| NotText { at: mark + error.valid_up_to(), is_wide: false })
        }
    }
}

/// The text of a file that people edit: UTF-8 with or without a byte order mark, or UTF-16 with one, as editors on
/// Windows save it.
pub fn decode_text(bytes: Vec<u8>) -> io::Result<String> {
    let has_wide_mark = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let is_unmarked = !has_wide_mark && bytes.contains(&0);
    let text = read_text(&bytes).ok().filter(|_| !is_unmarked).map(Cow::into_owned);
    // UTF-32 has characters of zero.
    text.filter(|text| !text.contains('\0')).ok_or_else(|| {
        let reason = "it is not text in UTF-8, nor in UTF-16 with a byte order mark: save it as UTF-8";
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

/// The text behind a byte order mark of this length.
fn decode_utf16(bytes: &[u8], mark: usize, unit: fn([u8; 2]) -> u16) -> Result<Cow<'_, str>, NotText> {
    let (pairs, rest) = bytes[mark..].as_chunks::<2>();
    let mut text = String::with_capacity(pairs.len());
    let mut at = mark;
    for letter in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let letter = letter.map_err(|_| NotText { at, is_wide: true })?;
        text.push(letter);
        at += 2 * letter.len_utf16();
    }
    if rest.is_empty() { Ok(Cow::Owned(text)) } else { Err(NotText { at, is_wide: true }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str, to: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to).collect()
    }

    #[test]
    fn text_is_the_same_in_each_encoding_of_an_editor() {
        let text = "key = \"größe\"\r\n";
        for (mark, bytes) in [
            (&b""[..], text.as_bytes().to_vec()),
            (b"\xef\xbb\xbf", text.as_bytes().to_vec()),
            (b"\xff\xfe", wide(text, u16::to_le_bytes)),
            (b"\xfe\xff", wide(text, u16::to_be_bytes)),
        ] {
            assert_eq!(decode_text([mark, &bytes].concat()).unwrap(), text, "{mark:?}");
        }
        assert_eq!(decode_text(Vec::new()).unwrap(), "");
        let latin = b"gr\xf6\xdfe".to_vec();
        let odd = b"\xff\xfea".to_vec();
        for wrong in [latin, odd, wide(text, u16::to_le_bytes), b"\xff\xfe\0\0k\0\0\0".to_vec()] {
            assert!(
                decode_text(wrong.clone()).unwrap_err().to_string().contains("save it as UTF-8"),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn what_is_no_text_is_told_with_its_byte() {
        let emoji = wide("a😀b", u16::to_le_bytes);
        assert_eq!(read_text(&[b"\xff\xfe", &emoji[..]].concat()).unwrap(), "a😀b");
        assert_eq!(read_text(&wide("key", u16::to_be_bytes)).unwrap(), "key");
        for (bytes, at, is_wide) in [
            (&b"\xef\xbb\xbfab\xff"[..], 5, false),
            (b"ab\xff", 2, false),
            (b"\xff\xfea\0b", 4, true),
            (b"\xff\xfe\x3d\xd8a\0", 2, true),
            (b"\xff\xfe\x3d\xd8\0\xde\0\xdea\0", 6, true),
            (b"a\0b\0\0\xdec\0", 4, true),
        ] {
            assert_eq!(read_text(bytes), Err(NotText { at, is_wide }), "{bytes:?}");
        }
    }
}

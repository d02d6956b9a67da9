//! Text of files that people edit, as their editors save it.

use std::io;

/// The text of a file: UTF-8 with or without a byte order mark, or UTF-16 with one, as editors on Windows save it.
pub fn decode_text(bytes: Vec<u8>) -> io::Result<String> {
    let decoded = match *bytes {
        [0xef, 0xbb, 0xbf, ref rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        [0xff, 0xfe, ref rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, ref rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    };
    // UTF-16 without a mark, and UTF-32, have bytes of zero.
    decoded.filter(|text| !text.contains('\0')).ok_or_else(|| {
        let reason = "it is not text in UTF-8, nor in UTF-16 with a byte order mark: save it as UTF-8";
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    String::from_utf16(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>()).ok()
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
}

//! Where an HTTP/1.1 answer ends (RFC 9112, section 6): its header says so, or the end of the connection.

use stacklab_model::count;

const MAX_CHUNK_LINE_BYTES: usize = 4 << 10;
const MAX_HEADERS: usize = 128;

/// The header of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Its status code.
    pub status: u16,
    pub(crate) bytes: usize,
    pub(crate) body: Body,
}

/// What of the content has not come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes.
    Bytes(u64),
    /// Chunks.
    Chunks(Chunks),
    /// All until the connection ends.
    UntilEnd,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    part: ChunkPart,
    line: Vec<u8>,
}

/// What comes next in a body of chunks.
#[derive(Debug, Default, PartialEq, Eq)]
enum ChunkPart {
    #[default]
    Size,
    /// This many bytes of a chunk.
    Data(u64),
    /// The end of the line behind them.
    DataEnd,
    Trailer,
    Done,
}

/// The header of an answer, behind those that only announce it (1xx); `None` until it is whole. A line that begins with
/// a space continues the one before (RFC 9112, section 5.2), and a space between a name and its colon does not count
/// (section 5.1).
pub fn read_head(bytes: &[u8]) -> Result<Option<ResponseHead>, String> {
    let mut parser = httparse::ParserConfig::default();
    parser.allow_obsolete_multiline_headers_in_responses(true);
    parser.allow_spaces_after_header_name_in_responses(true);
    let mut before = 0;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        let length = match parser.parse_response(&mut answer, &bytes[before..]) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(format!("not an HTTP response: {error}")),
        };
        before += length;
        let status = answer.code.unwrap_or_default();
        if !(100..200).contains(&status) || status == 101 {
            let body = find_body(status, answer.headers)?;
            return Ok(Some(ResponseHead { status, bytes: before, body }));
        }
    }
}

fn find_body(status: u16, headers: &[httparse::Header<'_>]) -> Result<Body, String> {
    if matches!(status, 204 | 304) {
        return Ok(Body::Bytes(0));
    }
    let mut is_coded = false;
    let mut is_chunked = false;
    let mut length: Option<u64> = None;
    for header in headers {
        let value = String::from_utf8_lossy(header.value);
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            is_coded = true;
            // The last coding counts.
            is_chunked =
                value.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"));
        } else if header.name.eq_ignore_ascii_case("content-length") {
            for one in value.split(',') {
                let digits = Some(one.trim()).filter(|one| one.bytes().all(|byte| byte.is_ascii_digit()));
                let bytes = digits.and_then(|digits| digits.parse().ok());
                let bytes =
                    bytes.ok_or("not an HTTP response: its Content-Length is not a number of bytes")?;
                if length.replace(bytes).is_some_and(|before| before != bytes) {
                    return Err("not an HTTP response: it has two values of Content-Length".to_owned());
                }
            }
        }
    }
    Ok(match length {
        _ if is_chunked => Body::Chunks(Chunks::default()),
        Some(bytes) if !is_coded => Body::Bytes(bytes),
        _ => Body::UntilEnd,
    })
}

impl Body {
    /// Takes the next bytes of the connection.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Body::Bytes(left) => *left = left.saturating_sub(bytes.len() as u64),
            Body::Chunks(chunks) => chunks.take(bytes)?,
            Body::UntilEnd => {}
        }
        Ok(())
    }

    /// Whether nothing more belongs to the answer.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Body::Bytes(left) => *left == 0,
            Body::Chunks(chunks) => chunks.part == ChunkPart::Done,
            Body::UntilEnd => false,
        }
    }

    /// What is missing at the end of the connection, if anything is.
    pub(crate) fn missing(&self) -> Option<String> {
        match self {
            Body::Bytes(0) | Body::UntilEnd => None,
            Body::Bytes(left) => Some(format!("{} of its Content-Length did not come", count(*left, "byte"))),
            Body::Chunks(_) if self.is_whole() => None,
            Body::Chunks(_) => Some("its last chunk is missing".to_owned()),
        }
    }
}

impl Chunks {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() && self.part != ChunkPart::Done {
            if let ChunkPart::Data(left) = &mut self.part {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                bytes = &bytes[taken..];
                if *left == 0 {
                    self.part = ChunkPart::DataEnd;
                }
                continue;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            bytes = rest;
            self.line.extend_from_slice(line);
            if self.line.len() > MAX_CHUNK_LINE_BYTES {
                return Err("not an HTTP response: the line of a chunk has no end".to_owned());
            }
            if end.is_some() {
                self.end_line()?;
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), String> {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        self.part = match self.part {
            ChunkPart::Size => match read_chunk_size(line)? {
                0 => ChunkPart::Trailer,
                size => ChunkPart::Data(size),
            },
            ChunkPart::DataEnd if line.is_empty() => ChunkPart::Size,
            ChunkPart::DataEnd => {
                return Err("not an HTTP response: a chunk is longer than its size".to_owned());
            }
            ChunkPart::Trailer if !line.is_empty() => ChunkPart::Trailer,
            _ => ChunkPart::Done,
        };
        Ok(())
    }
}

/// The size that a line begins with, in bytes; extensions may follow (RFC 9112, section 7.1).
fn read_chunk_size(line: &str) -> Result<u64, String> {
    let digits = line.split(';').next().unwrap_or_default().trim_end();
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let size = u64::from_str_radix(digits, 16).ok().filter(|_| is_hex);
    size.ok_or_else(|| "not an HTTP response: a chunk has no size".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> ResponseHead {
        read_head(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn the_header_says_where_the_answer_ends() {
        for (header, body) in [
            ("200 OK\r\nContent-Length: 500", Body::Bytes(500)),
            ("200 OK\r\ncontent-length: 5, 5", Body::Bytes(5)),
            ("404 No\r\nContent-Length: 0", Body::Bytes(0)),
            ("204 No Content", Body::Bytes(0)),
            ("304 Not Modified\r\nContent-Length: 500", Body::Bytes(0)),
            (
                "200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 3",
                Body::Chunks(Chunks::default()),
            ),
            ("200 OK\r\nTransfer-Encoding: gzip", Body::UntilEnd),
            ("200 OK", Body::UntilEnd),
            ("103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7", Body::Bytes(7)),
        ] {
            assert_eq!(head(&format!("HTTP/1.1 {header}\r\n\r\n")).body, body, "{header}");
        }
        assert_eq!(read_head(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"), Ok(None));
        for wrong in [
            "SSH-2.0-OpenSSH",
            "HTTP/1.1 200 OK\r\nContent-Length: -5",
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 6",
        ] {
            let reason = read_head(format!("{wrong}\r\n\r\n").as_bytes()).unwrap_err();
            assert!(reason.starts_with("not an HTTP response"), "{reason}");
        }
    }

    #[test]
    fn chunks_end_with_an_empty_one_however_split() {
        let whole = b"5;name=value\r\nhello\r\n3\r\n\r\n\n\r\n0\r\nTrailer: x\r\n\r\n";
        for pieces in 1..=whole.len() {
            let mut body = Body::Chunks(Chunks::default());
            for (place, piece) in whole.chunks(pieces).enumerate() {
                assert!(!body.is_whole(), "{pieces} {place}");
                body.take(piece).unwrap();
            }
            assert!(body.is_whole() && body.missing().is_none(), "{pieces}");
        }
        let mut cut = Body::Chunks(Chunks::default());
        cut.take(b"5\r\nhello\r\n").unwrap();
        assert_eq!(cut.missing().unwrap(), "its last chunk is missing");
        assert!(cut.take(b"zz\r\n").is_err() && Chunks::default().take(&[b'1'; 5000]).is_err());
    }

    #[test]
    fn chunk_data_ends_where_its_size_says() {
        for (whole, is_right) in [
            ("5\r\nhello\r\n0\r\n\r\n", true),
            ("5\nhello\n0\n\n", true),
            ("5 ;a=b\r\nhello\r\n0\r\n\r\n", true),
            ("5\r\nhelloXX0\r\n\r\n", false),
            ("5\r\nhello \r\n0\r\n\r\n", false),
            ("5\r\nhello0\r\n\r\n", false),
            ("4\r\nhello\r\n0\r\n\r\n", false),
            (" 5\r\nhello\r\n0\r\n\r\n", false),
        ] {
            for pieces in [1, whole.len()] {
                let mut body = Body::Chunks(Chunks::default());
                let taken = whole.as_bytes().chunks(pieces).try_for_each(|piece| body.take(piece));
                assert_eq!((taken.is_ok(), body.is_whole()), (is_right, is_right), "{whole:?}");
            }
        }
        let mut trailer = Body::Chunks(Chunks::default());
        trailer.take(b"0\r\n \r\n").unwrap();
        assert!(!trailer.is_whole(), "a line of spaces does not end it");
    }

    #[test]
    fn folded_line_continues_the_header_before() {
        for (header, body) in [
            ("X: a\r\n Content-Length: 9999\r\nContent-Length: 5", Body::Bytes(5)),
            ("Content-Length:\r\n\t5\r\nX: a\r\n b", Body::Bytes(5)),
            ("Content-Length : 5", Body::Bytes(5)),
            ("Transfer-Encoding: gzip,\r\n chunked", Body::Chunks(Chunks::default())),
        ] {
            assert_eq!(head(&format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n")).body, body, "{header}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut body = Body::Bytes(500);
        body.take(b"hello").unwrap();
        assert_eq!(body.missing().unwrap(), "495 bytes of its Content-Length did not come");
        body.take(&[0; 495]).unwrap();
        assert!(body.is_whole() && body.missing().is_none());
        assert!(!Body::UntilEnd.is_whole() && Body::UntilEnd.missing().is_none());
    }
}

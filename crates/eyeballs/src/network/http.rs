//! The server's side of HTTP: one request of a connection, and a page.

use std::io::{self, Read};

/// The longest request that is read, bytes.
const MAX_REQUEST: usize = 65_536;
/// Bytes of a page: several segments, of which the first fills an Ethernet frame.
const PAGE: usize = 4_000;

/// Reads up to the empty line that ends a request's head.
pub(super) fn read_request(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut room = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut room)?;
        if length == 0 || request.len() > MAX_REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.extend(&room[..length]);
    }
    Ok(request)
}

/// The answer to a request, whatever it asks for.
pub(super) fn answer(request: &[u8]) -> Vec<u8> {
    let mut page = b"<!DOCTYPE html><title>stacklab</title><p>".to_vec();
    page.resize(PAGE, b'.');
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {PAGE}\r\nConnection: close\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    if !request.starts_with(b"HEAD ") {
        answer.extend(page);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_a_page_or_its_head() {
        let request = read_request(&mut &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..]).unwrap();
        let whole = answer(&request);
        assert!(whole.starts_with(b"HTTP/1.1 200 OK\r\n") && whole.len() > PAGE);
        let head = answer(b"HEAD / HTTP/1.1\r\n\r\n");
        assert!(head.ends_with(b"\r\n\r\n") && head.len() + PAGE == whole.len());
        assert!(read_request(&mut &b"GET / HTTP/1.1\r\n"[..]).is_err(), "it ended early");
    }
}

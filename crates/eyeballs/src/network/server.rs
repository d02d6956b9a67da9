//! The servers behind the wire: HTTP on port 80, HTTPS on port 443, and the first line of SSH on port 22.

use crate::network::tls::Tls;
use stacklab_testbed::{Attempt, Fault};
use std::io::{self, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const HTTP: u16 = 80;
const HTTPS: u16 = 443;
const SSH: u16 = 22;
/// How long a connection may say nothing.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest request that is read, bytes.
const MAX_REQUEST: usize = 65_536;
/// Bytes of a page: several segments, of which the first fills an Ethernet frame.
const PAGE: usize = 4_000;

/// What answers a connection.
type Serve = Arc<dyn Fn(TcpStream) -> io::Result<()> + Send + Sync>;

/// Starts the servers of the calling thread's namespace. They end with the process.
pub(super) fn start_servers(tls: Tls) -> Result<(), Fault> {
    listen(HTTP, Arc::new(serve_http))?;
    listen(HTTPS, Arc::new(move |stream| tls.serve(stream)))?;
    listen(SSH, Arc::new(serve_ssh))
}

/// Listens on a port of both families. Each connection has a thread.
fn listen(port: u16, serve: Serve) -> Result<(), Fault> {
    let step = format!("listen on port {port} of the server's namespace");
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).attempt(&*step)?;
    let accepting = thread::Builder::new().name("listener".to_owned());
    accepting.spawn(move || accept_all(&listener, &serve)).attempt(step)?;
    Ok(())
}

fn accept_all(listener: &TcpListener, serve: &Serve) {
    for stream in listener.incoming().flatten() {
        let serve = serve.clone();
        // A client that says nothing, or goes away early, is not a failure.
        let _ = stream.set_read_timeout(Some(TIMEOUT));
        let _ = thread::Builder::new().name("server".to_owned()).spawn(move || serve(stream));
    }
}

fn serve_http(mut stream: TcpStream) -> io::Result<()> {
    let request = read_request(&mut stream)?;
    stream.write_all(&answer(&request))
}

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

/// The line that begins SSH (RFC 4253), which the server says first.
fn serve_ssh(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(b"SSH-2.0-stacklab\r\n")?;
    let mut room = [0; 4096];
    while stream.read(&mut room)? > 0 {}
    Ok(())
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

//! The servers behind the wire: HTTP on port 80, HTTPS on port 443, and the first line of SSH on port 22.

use crate::network::http::{answer, read_request};
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

/// The line that begins SSH (RFC 4253), which the server says first.
fn serve_ssh(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(b"SSH-2.0-stacklab\r\n")?;
    let mut room = [0; 4096];
    while stream.read(&mut room)? > 0 {}
    Ok(())
}

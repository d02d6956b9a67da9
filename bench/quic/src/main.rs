//! A server of bytes and its client, by TLS over TCP or by QUIC, and a client of web servers by HTTP/1.1, 2 or 3: the
//! same TLS library, one thread each.
//!
//! The built-in study `quic` compares them.

mod http;
mod keys;
mod quic;
mod tls;

use crate::http::Requests;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Builder;

/// What fails ends the program, with its reason.
type Failed = Box<dyn Error + Send + Sync>;

const USAGE: &str = "\
stacklab-quic tls|quic serve ADDRESS:PORT              sends each client what it asks for, until it is ended
stacklab-quic tls|quic get ADDRESS:PORT MEGABYTES      asks for that many, and ends when all are there
stacklab-quic http1|http2|http3 get ADDRESS:PORT PATH COUNT BYTES
                                                       asks a web server so often, one after the other, for a file
                                                       of BYTES bytes
stacklab-quic version";

/// Bytes of a write and of a read.
const BLOCK_BYTES: usize = 64 << 10;
/// What a server may send before it hears that it was read: as much as over a path of 1 Gbit/s and 64 ms. Otherwise the
/// defaults of the libraries, which differ, would be part of what is measured.
const WINDOW_BYTES: u32 = 8 << 20;
/// Longest request, megabytes.
const MAX_MEGABYTES: u64 = 100_000;

/// Most requests of a client of HTTP.
const MAX_REQUESTS: u64 = 1_000_000_000;
/// Longest answer of HTTP, bytes. The sum of the most answers is still a number.
const MAX_ANSWER_BYTES: u64 = 10_000_000_000;

#[derive(Debug, PartialEq, Eq)]
enum Command {
    Serve,
    Get { megabytes: u64 },
    Request(Requests),
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["version"] {
        println!("stacklab-quic {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let Some((protocol, address, command)) = parse(&words) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(protocol, address, &command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("stacklab-quic: {protocol} {address}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Option<(&str, SocketAddr, Command)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (protocol, address, command) = match words.as_slice() {
        [protocol @ ("tls" | "quic"), "serve", address] => (*protocol, *address, Command::Serve),
        [protocol @ ("tls" | "quic"), "get", address, megabytes] => {
            let megabytes = parse_number(megabytes, MAX_MEGABYTES)?;
            (*protocol, *address, Command::Get { megabytes })
        }
        [protocol @ ("http1" | "http2" | "http3"), "get", address, path, count, bytes]
            if path.starts_with('/') =>
        {
            let count = parse_number(count, MAX_REQUESTS)?;
            let answer_bytes = parse_number(bytes, MAX_ANSWER_BYTES)?;
            (
                *protocol,
                *address,
                Command::Request(Requests { path: (*path).to_owned(), count, answer_bytes }),
            )
        }
        _ => return None,
    };
    Some((protocol, address.parse().ok()?, command))
}

fn parse_number(text: &str, most: u64) -> Option<u64> {
    text.parse().ok().filter(|number| (1..=most).contains(number))
}

fn run(protocol: &str, address: SocketAddr, command: &Command) -> Result<(), Failed> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        match (protocol, command) {
            ("tls", Command::Serve) => tls::serve(address).await,
            ("tls", Command::Get { megabytes }) => tls::get(address, *megabytes).await,
            (_, Command::Serve) => quic::serve(address).await,
            (_, Command::Get { megabytes }) => quic::get(address, *megabytes).await,
            ("http1", Command::Request(requests)) => http::get_by_1(address, requests).await,
            ("http2", Command::Request(requests)) => http::get_by_2(address, requests).await,
            (_, Command::Request(requests)) => http::get_by_3(address, requests).await,
        }
    })
}

/// Sends a client the megabytes that it asks for.
async fn answer(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> Result<(), Failed> {
    let megabytes = from.read_u64().await?;
    if !(1..=MAX_MEGABYTES).contains(&megabytes) {
        return Err(format!("it asks for {megabytes} megabytes").into());
    }
    let block = vec![7; BLOCK_BYTES];
    let mut left = megabytes * 1_000_000;
    while left > 0 {
        let part = left.min(BLOCK_BYTES as u64);
        to.write_all(&block[..part as usize]).await?;
        left -= part;
    }
    Ok(to.shutdown().await?)
}

/// Asks a server for megabytes, and reads all of them.
async fn ask(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    megabytes: u64,
) -> Result<(), Failed> {
    to.write_u64(megabytes).await?;
    to.flush().await?;
    let mut room = vec![0; BLOCK_BYTES];
    let mut left = megabytes * 1_000_000;
    while left > 0 {
        match from.read(&mut room).await? {
            0 => return Err(format!("the server has closed, and {left} bytes are missing").into()),
            count => left = left.saturating_sub(count as u64),
        }
    }
    println!("{megabytes} MB");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Option<Command> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(&words).map(|(_, _, command)| command)
    }

    #[test]
    fn commands_are_a_protocol_and_an_address() {
        let get = ["quic", "get", "[::1]:1", "10"];
        let request = ["http3", "get", "[::1]:1", "/file", "3", "100"];
        let requests = Requests { path: "/file".to_owned(), count: 3, answer_bytes: 100 };
        assert_eq!(parse_words(&["tls", "serve", "127.0.0.1:1"]), Some(Command::Serve));
        assert_eq!(parse_words(&get), Some(Command::Get { megabytes: 10 }));
        assert_eq!(parse_words(&request), Some(Command::Request(requests)));
        for wrong in [
            &["tcp", "serve", "127.0.0.1:1"][..],
            &["http1", "serve", "127.0.0.1:1"],
            &["tls", "serve", "127.0.0.1"],
            &["tls", "get", "127.0.0.1:1", "0"],
            &["tls", "get", "127.0.0.1:1"],
            &["http2", "get", "127.0.0.1:1", "file", "1", "1"],
            &["http2", "get", "127.0.0.1:1", "/file", "1"],
            &["http2", "get", "127.0.0.1:1", "/file", "1", "0"],
            &[],
        ] {
            assert_eq!(parse_words(wrong), None, "{wrong:?}");
        }
    }
}

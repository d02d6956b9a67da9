//! A server of bytes and its client, by TLS over TCP or by QUIC: the same TLS library, one thread each.
//!
//! `bench/quic/study.toml` compares them.

mod keys;
mod quic;
mod tls;

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Builder;

/// What fails ends the program, with its reason.
type Failed = Box<dyn Error + Send + Sync>;

const USAGE: &str = "\
stacklab-quic tls|quic serve ADDRESS:PORT              sends each client what it asks for, until it is ended
stacklab-quic tls|quic get ADDRESS:PORT MEGABYTES      asks for so much, and ends when all of it is there";

/// Bytes of a write and of a read.
const BLOCK_BYTES: usize = 64 << 10;
/// Longest request, megabytes.
const MAX_MEGABYTES: u64 = 100_000;

enum Command {
    Serve,
    Get { megabytes: u64 },
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
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
        [protocol, "serve", address] => (*protocol, *address, Command::Serve),
        [protocol, "get", address, megabytes] => {
            let megabytes =
                megabytes.parse().ok().filter(|megabytes| (1..=MAX_MEGABYTES).contains(megabytes))?;
            (*protocol, *address, Command::Get { megabytes })
        }
        _ => return None,
    };
    Some((protocol, address.parse().ok()?, command)).filter(|_| ["tls", "quic"].contains(&protocol))
}

fn run(protocol: &str, address: SocketAddr, command: &Command) -> Result<(), Failed> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        match (protocol, command) {
            ("tls", Command::Serve) => tls::serve(address).await,
            ("tls", Command::Get { megabytes }) => tls::get(address, *megabytes).await,
            (_, Command::Serve) => quic::serve(address).await,
            (_, Command::Get { megabytes }) => quic::get(address, *megabytes).await,
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

    fn parse_words(words: &[&str]) -> Option<u64> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(&words).map(|(_, _, command)| match command {
            Command::Serve => 0,
            Command::Get { megabytes } => megabytes,
        })
    }

    #[test]
    fn commands_are_a_protocol_and_an_address() {
        assert_eq!(parse_words(&["tls", "serve", "127.0.0.1:1"]), Some(0));
        assert_eq!(parse_words(&["quic", "get", "[::1]:1", "10"]), Some(10));
        for wrong in [
            &["tcp", "serve", "127.0.0.1:1"][..],
            &["tls", "serve", "127.0.0.1"],
            &["tls", "get", "127.0.0.1:1", "0"],
            &["tls", "get", "127.0.0.1:1"],
            &[],
        ] {
            assert_eq!(parse_words(wrong), None, "{wrong:?}");
        }
    }
}

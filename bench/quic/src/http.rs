//! A client of HTTP/1.1, 2 and 3: the same requests by each, one after the other on one connection.

use crate::{BLOCK_BYTES, Failed, WINDOW_BYTES, keys, quic, tls};
use bytes::Buf;
use h3_quinn::Connection;
use http::{Request, StatusCode};
use httparse::{EMPTY_HEADER, Response, Status};
use std::net::SocketAddr;
use std::str::from_utf8;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

const ALPN_1: &[u8] = b"http/1.1";
const ALPN_2: &[u8] = b"h2";
const ALPN_3: &[u8] = b"h3";
/// Longest head of an answer of HTTP/1.1, and the most fields in it.
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_FIELDS: usize = 64;

/// What a client asks for, how often, and how long each answer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requests {
    pub path: String,
    pub count: u64,
    pub answer_bytes: u64,
}

impl Requests {
    fn build_request(&self) -> Result<Request<()>, Failed> {
        Ok(Request::get(format!("https://{}{}", keys::NAME, self.path)).body(())?)
    }

    /// An answer of another length is not the file that all protocols are to carry: an empty one would be the fastest.
    fn expect_length(&self, bytes: u64) -> Result<(), Failed> {
        let expected = self.answer_bytes;
        if bytes == expected {
            return Ok(());
        }
        Err(format!("the server answers {bytes} bytes, and {expected} are expected").into())
    }
}

/// The answers so far.
#[derive(Debug, Default)]
struct Answers {
    count: u64,
    bytes: u64,
}

impl Answers {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn print(&self) {
        println!("{} answers, {} bytes", self.count, self.bytes);
    }
}

fn expect_ok(status: StatusCode) -> Result<(), Failed> {
    if status == StatusCode::OK { Ok(()) } else { Err(format!("the server answers {status}").into()) }
}

pub(crate) async fn get_by_1(address: SocketAddr, requests: &Requests) -> Result<(), Failed> {
    let mut stream = tls::connect(address, ALPN_1).await?;
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", requests.path, keys::NAME);
    let mut answers = Answers::default();
    let mut room = vec![0; BLOCK_BYTES];
    for _ in 0..requests.count {
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        answers.add(read_answer(&mut stream, &mut room, requests).await?);
    }
    answers.print();
    Ok(stream.shutdown().await?)
}

/// Reads an answer whose length the server says, and gives it. Nothing follows it before the next request.
async fn read_answer(
    from: &mut (impl AsyncRead + Unpin),
    room: &mut [u8],
    requests: &Requests,
) -> Result<u64, Failed> {
    let mut filled = 0;
    let head = loop {
        match from.read(&mut room[filled..]).await? {
            0 => return Err("the server has closed before its answer was whole".into()),
            count => filled += count,
        }
        if let Some(head) = read_head(&room[..filled])? {
            break head;
        }
        if filled > MAX_HEAD_BYTES {
            return Err(format!("the head of an answer has more than {MAX_HEAD_BYTES} bytes").into());
        }
    };
    requests.expect_length(head.body_bytes)?;
    let mut left = head.body_bytes.saturating_sub((filled - head.bytes) as u64);
    while left > 0 {
        match from.read(room).await? {
            0 => return Err(format!("the server has closed, and {left} bytes are missing").into()),
            count => left = left.saturating_sub(count as u64),
        }
    }
    Ok(head.body_bytes)
}

struct Head {
    bytes: usize,
    body_bytes: u64,
}

/// Reads the head of an answer; `None` if it is not whole yet.
fn read_head(bytes: &[u8]) -> Result<Option<Head>, Failed> {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut response = Response::new(&mut fields);
    let Status::Complete(length) = response.parse(bytes)? else { return Ok(None) };
    expect_ok(StatusCode::from_u16(response.code.unwrap_or_default())?)?;
    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            return Ok(Some(Head { bytes: length, body_bytes: from_utf8(field.value)?.trim().parse()? }));
        }
    }
    Err("the server does not say how long its answer is".into())
}

pub(crate) async fn get_by_2(address: SocketAddr, requests: &Requests) -> Result<(), Failed> {
    let stream = tls::connect(address, ALPN_2).await?;
    let mut settings = h2::client::Builder::new();
    settings.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
    let (client, connection) = settings.handshake::<_, bytes::Bytes>(stream).await?;
    let driver = tokio::spawn(connection);
    let mut client = client.ready().await?;
    let mut answers = Answers::default();
    for _ in 0..requests.count {
        let (answer, _) = client.send_request(requests.build_request()?, true)?;
        let answer = answer.await?;
        expect_ok(answer.status())?;
        let mut body = answer.into_body();
        let mut bytes = 0;
        while let Some(data) = body.data().await {
            let read = data?.len();
            body.flow_control().release_capacity(read)?;
            bytes += read as u64;
        }
        requests.expect_length(bytes)?;
        answers.add(bytes);
        client = client.ready().await?;
    }
    answers.print();
    drop(client);
    // It says goodbye.
    Ok(driver.await??)
}

pub(crate) async fn get_by_3(address: SocketAddr, requests: &Requests) -> Result<(), Failed> {
    let endpoint = quic::client(address, ALPN_3)?;
    let connection = endpoint.connect(address, keys::NAME)?.await?;
    let (mut driver, mut client) = h3::client::new(Connection::new(connection)).await?;
    let driver = tokio::spawn(async move { driver.wait_idle().await });
    let mut answers = Answers::default();
    for _ in 0..requests.count {
        let mut stream = client.send_request(requests.build_request()?).await?;
        stream.finish().await?;
        expect_ok(stream.recv_response().await?.status())?;
        let mut bytes = 0;
        while let Some(data) = stream.recv_data().await? {
            bytes += data.remaining() as u64;
        }
        requests.expect_length(bytes)?;
        answers.add(bytes);
    }
    answers.print();
    // The last handle closes the connection.
    drop(client);
    let ended = driver.await?;
    if !ended.is_h3_no_error() {
        return Err(ended.into());
    }
    quic::send_close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<u64>, String> {
        let head = read_head(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(head.map(|head| head.bytes as u64 + head.body_bytes))
    }

    fn read_whole(text: &str, answer_bytes: u64) -> Result<u64, String> {
        let requests = Requests { path: "/".to_owned(), count: 1, answer_bytes };
        let mut bytes = text.as_bytes();
        let mut room = vec![0; BLOCK_BYTES];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(read_answer(&mut bytes, &mut room, &requests)).map_err(|error| error.to_string())
    }

    #[test]
    fn answers_of_another_length_are_errors() {
        let seven = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n1234567";
        assert_eq!(read_whole(seven, 7), Ok(7));
        assert!(read_whole(seven, 8).unwrap_err().contains("answers 7 bytes, and 8 are expected"));
        assert!(read_whole(&seven[..seven.len() - 1], 7).unwrap_err().contains("1 bytes are missing"));
        let empty = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        assert!(read_whole(empty, 7).unwrap_err().contains("answers 0 bytes"));
        let huge = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", u64::MAX);
        assert!(read_whole(&huge, 7).unwrap_err().contains("are expected"));
    }

    #[test]
    fn heads_say_how_much_follows() {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n";
        assert_eq!(read(head), Ok(Some(head.len() as u64 + 7)));
        assert_eq!(read(&head[..head.len() - 1]), Ok(None));
        assert!(read("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").unwrap_err().contains("404"));
        assert!(read("HTTP/1.1 200 OK\r\n\r\n").unwrap_err().contains("how long"));
        assert!(read("no such thing\r\n\r\n").is_err());
    }
}

//! The protocol of iperf3, versions 3.9 to 3.21 (esnet/iperf: src/iperf_api.h, src/iperf_api.c, src/iperf_udp.c).
//!
//! A test has a control connection over TCP. The client opens it and sends a cookie. Then each side says what it
//! does by a [`State`] of one byte; parameters and results are JSON texts behind their length ([`text_bytes`]). Each
//! TCP stream begins with the cookie again, each UDP stream with a greeting ([`datagram`]).
//!
//! [`client`] and [`server`] have the sockets; streams run by the engine's loops (`stacklab_traffic::foreign`).

pub mod client;
mod control;
pub mod datagram;
pub mod figures;
mod json;
pub mod parameters;
pub mod results;
mod running;
pub mod server;
pub mod state;
mod streams;

pub use parameters::Parameters;
pub use results::{Results, StreamResult};
pub use state::{Refusal, State};

/// What streams of a test are known by: 36 letters and a zero.
pub(crate) type Cookie = [u8; 37];

/// The server's default port, of TCP and UDP.
pub const PORT: u16 = 5201;
/// Largest parameters, bytes of JSON (MAX_PARAMS_JSON_STRING).
pub const MOST_PARAMETER_BYTES: usize = 8 << 10;
/// Largest results, bytes of JSON: those of 256 streams, with the output of a server.
pub const MOST_RESULT_BYTES: usize = 1 << 20;
/// Most streams of one direction of a test (MAX_STREAMS).
pub const MOST_STREAMS: u32 = 128;
/// Largest block, bytes (MAX_BLOCKSIZE).
pub const MOST_BLOCK_BYTES: u32 = 1 << 20;
/// Largest datagram, bytes of payload (MAX_UDP_BLOCKSIZE).
pub const MOST_DATAGRAM_BYTES: u32 = 65_507;
/// Longest test and longest omitted part, seconds (MAX_TIME, MAX_OMIT_TIME).
pub const MOST_SECONDS: u32 = 86_400;
/// Longest omitted part, seconds.
pub const MOST_OMIT_SECONDS: u32 = 600;

/// The number of a stream in results, by its place among a test's streams: 1, 3, 4, 5 and so on, since iperf3 counts
/// the second one twice.
pub fn stream_id(place: usize) -> u64 {
    if place == 0 { 1 } else { place as u64 + 2 }
}

/// The length of a JSON text, from the four bytes before it.
///
/// # Errors
/// When it is longer than `most`: nothing is allocated for it.
pub fn text_bytes(prefix: [u8; 4], most: usize) -> Result<usize, String> {
    let length = u32::from_be_bytes(prefix) as usize;
    if length > most {
        return Err(format!("a text of {length} bytes was announced, the maximum is {most}"));
    }
    Ok(length)
}

/// A JSON text behind its length.
pub fn framed(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_longer_than_it_may_be() {
        let framed = framed("{}");
        assert_eq!(framed, [0, 0, 0, 2, b'{', b'}']);
        assert_eq!(text_bytes([0, 0, 32, 0], MOST_PARAMETER_BYTES), Ok(8192));
        assert!(text_bytes([255; 4], MOST_RESULT_BYTES).unwrap_err().contains("4294967295"));
    }

    #[test]
    fn no_stream_has_number_two() {
        assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
    }
}

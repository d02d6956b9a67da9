//! The protocol of iperf3, versions 3.9 to 3.21 (esnet/iperf: src/iperf_api.h, src/iperf_api.c, src/iperf_udp.c).
//!
//! A test has a control connection over TCP. The client opens it and sends a [`Cookie`]. Then each side says what it
//! does by a [`State`] of one byte; parameters and results are JSON texts behind their length ([`text_bytes`]). Each
//! TCP stream begins with the cookie again, each UDP stream with a greeting ([`datagram`]).
//!
//! [`client`] and [`server`] have the sockets; streams run by the engine's loops (`stacklab_traffic::foreign`).

pub mod client;
mod control;
pub mod cookie;
pub mod datagram;
pub mod figures;
mod json;
mod limits;
pub mod parameters;
pub mod results;
pub mod server;
pub mod state;
mod streams;

pub use cookie::Cookie;
pub use limits::{
    MOST_BLOCK_BYTES, MOST_DATAGRAM_BYTES, MOST_OMIT_SECONDS, MOST_PARAMETER_BYTES, MOST_RESULT_BYTES,
    MOST_SECONDS, MOST_STREAMS, PORT, stream_id,
};
pub use parameters::Parameters;
pub use results::{Results, StreamResult};
pub use state::{Refusal, State};

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
}

//! Limits of iperf3's own, and how it numbers streams.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stream_has_number_two() {
        assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
    }
}

//! What reads the bytes of a client's programs, for the fuzz targets (`fuzz/`).

use crate::network::answer::{Unreachable, refuse, report_unreachable};
use crate::network::dns::answer_any;
use crate::network::packet::Headers;

/// The refusal and the ICMP error that answer a packet, if it has headers that the wire reads.
pub fn packet_answers(packet: &[u8]) -> Vec<Vec<u8>> {
    let Some(headers) = Headers::parse(packet) else { return Vec::new() };
    let mut answers = vec![report_unreachable(packet, &headers, Unreachable::Prohibited)];
    answers.extend(refuse(&headers));
    answers
}

/// The resolver's reply to a query; `None` if it sends none.
pub fn query_answer(query: &[u8]) -> Option<Vec<u8>> {
    answer_any(query)
}

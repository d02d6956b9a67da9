//! What a client sends that `stacklab eyeballs` measures.

use stacklab_eyeballs::fuzzing::{packet_answers, query_answer};

/// A packet of a client, and a query of its resolver: answers are IP packets no longer than the minimum MTU, and
/// replies have the query's number.
pub fn client_packet(data: &[u8]) {
    for answer in packet_answers(data) {
        assert!((40..=1280).contains(&answer.len()) && matches!(answer[0] >> 4, 4 | 6), "{answer:?}");
    }
    if let Some(reply) = query_answer(data) {
        assert!(reply.len() >= 12 && reply[..2] == data[..2], "{reply:?}");
    }
}

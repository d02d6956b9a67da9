//! `factors.size`: what a message or frame can hold.

use crate::parse::tests::{STUDY, assert_mistakes, study, with};

#[test]
fn the_largest_and_smallest_sizes_are_accepted() {
    study(&with("[128, 1408]", "[32, 1428]"));
    study(&with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace("[128, 1408]", "[32, 65507]"));
    study(&with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace("[128, 1408]", "[18, 65507]"));
    study(
        &with("[\"tcp\", \"udp\"]", "[\"udp\"]")
            .replace("\"payload\"", "\"frame\"")
            .replace("128", "84")
            .replace("1408", "1518"),
    );
    study(
        &with("\"payload\"", "\"write\"").replace("\"tcp\", \"udp\"", "\"tcp\"").replace("1408", "131_072"),
    );
}

#[test]
fn a_size_that_cannot_be_sent_is_named() {
    assert_mistakes(&[
        (with("128,", "31,"), &["a message of 31 bytes is smaller", "at least 32 for probe.stream over tcp"]),
        (
            with("\"payload\"", "\"frame\"").replace("\"tcp\", ", "").replace("128,", "83,"),
            &["a frame of 83 bytes leaves 17 bytes behind the ipv6 and udp headers", "at least 84 for ipv6"],
        ),
        (
            with("\"payload\"", "\"frame\"").replace("\"tcp\", ", "").replace("128,", "84,").replace(
                "[probe.stream]",
                "[probe.echo]\nlength = { packets = 9 }\nmetrics = [\"rtt\"]\n[probe.stream]",
            ),
            &["the header of probe.echo over udp has 32", "at least 98 for ipv6"],
        ),
        (
            with("\"payload\"", "\"frame\"").replace("\"tcp\", ", "").replace("128,", "1519,"),
            &["a frame of 1519 bytes does not fit the link's MTU of 1500", "at most 1518"],
        ),
        (
            with("\"payload\"", "\"payload\", \"frame\""),
            &["`size_of = frame` is not possible with tcp", "together"],
        ),
        (
            with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace("1408", "65508"),
            &["UDP datagram over ipv4 cannot hold 65508", "at most 65507"],
        ),
        (
            STUDY[..STUDY.find("[[").unwrap()]
                .replace("\"tcp\", \"udp\"", "\"udp\"")
                .replace("\"ipv4\", \"ipv6\"", "\"ipv6\"")
                .replace("1408", "65528"),
            &["UDP datagram over ipv6 cannot hold 65528", "at most 65527"],
        ),
    ]);
}

//! Which arms are interleaved.

use super::{STUDY, errors, study, with, write_routed_study};
use stacklab_model::ArmSchedule;

/// How a study's arms are interleaved.
fn schedule(text: &str) -> ArmSchedule {
    study(text).schedule
}

#[test]
fn arms_are_interleaved_unless_something_forbids_it() {
    assert_eq!(schedule(STUDY), ArmSchedule::TokenPassing(None));
    let sliced = schedule(&with("[blocks]", "[blocks]\nslice = \"5ms\""));
    assert_eq!(sliced, ArmSchedule::TokenPassing(Some(5_000_000)));
    assert!(schedule(&with("[blocks]", "[blocks]\nschedule = \"sequential\"")).is_alone());
    // A tunnel and none beside each other, of which no figure of a whole host is asked.
    let compared = "factor = \"mechanism\"\nbaseline = \"native\"\ncandidate = \"4in6\"";
    let mechanisms = write_routed_study("mechanism = [\"native\", \"4in6\"]")
        .replace("factor = \"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"", compared)
        .replace("family = [\"ipv4\", \"ipv6\"]", "family = [\"ipv4\"]");
    assert!(!schedule(&mechanisms).is_alone());

    let separate = [
        with("{ time = \"200ms\" }", "{ packets = 1000 }"),
        STUDY[..STUDY.find("[[comparison]]").unwrap()].to_owned(),
        with("[\"throughput\"]", "[\"throughput\", \"memory_sockets\"]"),
        // Each slice would wait for its last message for as long as the probe lasts.
        write_routed_study("").replace("\"routed\"", "\"routed\"\ndelay = \"100ms\""),
        // A window that waits for its turn is restarted.
        with("\"tcp\", \"udp\"]", "\"tcp\"]\ncongestion_control = [\"cubic\", \"reno\"]").replace(
            "\"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"",
            "\"congestion_control\"\nbaseline = \"cubic\"\ncandidate = \"reno\"",
        ),
        // Testbeds beside each other share the processors.
        mechanisms.replace("[\"throughput\"]", "[\"throughput\", \"cpu_sender\"]"),
        with("size =", "os = [\"namespace\", \"uml\"]\nsize =").replace(
            "\"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"",
            "\"os\"\nbaseline = \"namespace\"\ncandidate = \"uml\"",
        ),
    ];
    for text in separate {
        assert!(schedule(&text).is_alone(), "{text}");
    }
}

#[test]
fn a_slice_that_cannot_be_is_refused_with_the_reason() {
    for (part, by, reason) in [
        ("{ time = \"200ms\" }", "{ packets = 1000 }", "probe.stream ends after 1000 messages"),
        ("min = 6", "slice = \"50ms\"\nmin = 6", "probe.stream has no time for 5 slices"),
    ] {
        let text = with(part, by);
        let text =
            if text.contains("slice") { text } else { text.replace("[blocks]", "[blocks]\nslice = \"5ms\"") };
        let said = errors(&text).to_string();
        assert!(said.contains("`blocks.slice` is set") && said.contains(reason), "{said}");
    }
}

//! `[probe.*]`: metrics, length and pacing.

use crate::parse::tests::{assert_mistakes, study, with, write_routed_study};
use stacklab_model::{Length, Metric, Pacing, Probe};

#[test]
fn messages_may_leave_at_the_links_rate() {
    let paced = with("\"200ms\" }", "\"200ms\" }\nmessage_rate = \"link\"");
    let study = study(&paced.replace("mtu = 1500", "rate = \"1 Gbit/s\""));
    assert_eq!(study.probe(Probe::Stream).unwrap().pacing, Pacing::Link);
}

#[test]
fn each_probe_has_its_pacing() {
    let probes = r#"[probe.stream]
message_rate = 1000
metrics = ["throughput"]
length = { packets = 1_000_000 }
[probe.echo]
metrics = ["rtt"]
length = { time = "1s" }
[probe.echo_open_loop]
message_rate = 0.5
metrics = ["rtt_open"]
length = { time = "10s" }
[probe.connect]
metrics = ["connect_time"]
length = { packets = 100 }
"#;
    let study =
        study(&with("[probe.stream]\nmetrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n", probes));
    for (probe, pacing) in [
        (Probe::Stream, Pacing::Schedule(1000.0)),
        (Probe::Echo, Pacing::Lockstep),
        (Probe::EchoOpenLoop, Pacing::Schedule(0.5)),
        (Probe::Connect, Pacing::Lockstep),
    ] {
        assert_eq!(study.probe(probe).unwrap().pacing, pacing, "{probe}");
    }
    assert_eq!(study.probe(Probe::Connect).unwrap().length, Length::Packets(100));
}

#[test]
fn paced_stream_is_a_flood_share_if_arms_interleave() {
    for (rate, arms, pacing) in [
        ("", "schedule = \"interleaved\"\n", Pacing::Share(0.5)),
        ("message_rate = \"20 %\"\n", "schedule = \"interleaved\"\n", Pacing::Share(0.2)),
        ("message_rate = 1000\n", "", Pacing::Schedule(1000.0)),
    ] {
        assert_eq!(study(&pace(rate, arms)).probe(Probe::Paced).unwrap().pacing, pacing, "{rate}{arms}");
    }
    let of_jitter = study(&pace("message_rate = 1000\n", ""));
    assert_eq!(of_jitter.probe_of(Metric::Jitter), Probe::Paced);
    assert_eq!(of_jitter.probe_of(Metric::Throughput), Probe::Stream);
    assert_mistakes(&[
        (
            pace("", "schedule = \"sequential\"\n"),
            &["a share of the flood rate", "not interleaved", "message_rate = messages per second"],
        ),
        (
            pace("", "").replace("[factors]\n", "[factors]\nqueue_length = [100, 1000]\n") + OTHER_QUEUE,
            &["a share of the flood rate", "not interleaved"],
        ),
        (pace("message_rate = \"fast\"\n", ""), &["or a share of the flood rate, such as \"50 %\""]),
        (
            pace("message_rate = 1000\n", "").replace("[\"throughput\"]", "[\"throughput\", \"jitter\"]"),
            &["probe.stream measures `jitter` too"],
        ),
        (
            pace("message_rate = 1000\n", "").replace("\"jitter\"", "\"throughput\""),
            &["probe paced does not take `throughput`", "under [probe.stream]"],
        ),
    ]);
}

/// A comparison whose arms are not in one trial.
const OTHER_QUEUE: &str =
    "[[comparison]]\nfactor = \"queue_length\"\nbaseline = 100\ncandidate = 1000\nmetrics = [\"jitter\"]\n";

/// The example with a paced stream, and with these keys of the stream and of the blocks.
fn pace(rate: &str, arms: &str) -> String {
    let paced = "[probe.paced]\nmetrics = [\"jitter\"]\nlength = { time = \"1s\" }\n";
    with("[blocks]", &format!("{paced}{rate}[blocks]\n{arms}"))
}

#[test]
fn a_mistake_in_a_probe_or_its_metrics_is_named() {
    let probe = "metrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n";
    assert_mistakes(&[
        (
            with(probe, "").replace("[probe.stream]", "[probe]"),
            &["`probe` is empty", "one of stream, paced, echo"],
        ),
        (with("probe.stream", "probe.stram"), &["no key `probe.stram`", "did you mean `stream`?"]),
        (with("[\"throughput\"]", "[\"rtt\"]"), &["probe stream does not take `rtt`", "under [probe.echo]"]),
        (
            with("[\"throughput\"]", "[\"goodput\"]"),
            &["no metric `goodput`", " more: stacklab study reference"],
        ),
        (
            with("[\"throughput\"]", "[\"loss\", \"loss\"]"),
            &["`loss` occurs twice in `probe.stream.metrics`"],
        ),
        (with("metrics = [\"throughput\"]\n", ""), &["`probe.stream.metrics` is missing"]),
        (
            with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace(
                "[blocks]",
                "[probe.connect]\nmetrics = [\"connect_time\"]\nlength = { packets = 9 }\n[blocks]",
            ),
            &["probe connect needs TCP", "the only transport"],
        ),
    ]);
}

#[test]
fn a_mistake_in_the_length_of_a_probe_is_named() {
    assert_mistakes(&[
        (
            with("{ time = \"200ms\" }", "{ time = \"0ms\" }"),
            &["`probe.stream.length.time`", "from 1ms to 24h"],
        ),
        (
            with("{ time = \"200ms\" }", "{ packets = 0 }"),
            &["`probe.stream.length.packets`", "number from 1 to"],
        ),
        (
            with("{ time = \"200ms\" }", "{ time = \"1s\", packets = 9 }"),
            &["with exactly one of packets, time"],
        ),
        (with("{ time = \"200ms\" }", "{ bytes = 1 }"), &["no key `probe.stream.length.bytes`"]),
        (with("{ time", "{ packets = 10 }\nwarmup = \"2h\" #"), &["`probe.stream.warmup`", "from 0s to 1h"]),
        (
            with("{ time", "{ packets = 10 }\ninterval = \"0s\" #"),
            &["`probe.stream.interval`", "from 1ms to 1h"],
        ),
        (
            with("\"200ms\" }", "\"24h\" }\ninterval = \"1ms\""),
            &["86400000 rows of this interval", "at least 864 ms"],
        ),
    ]);
}

#[test]
fn a_mistake_in_a_message_rate_is_named() {
    let echo = "[probe.echo]\nmetrics = [\"rtt\"]\nlength = { time = \"1s\" }\n[blocks]";
    let open = "[probe.echo_open_loop]\nmetrics = [\"rtt_open\"]\nlength = { time = \"1s\" }\n[blocks]";
    assert_mistakes(&[
        (
            with("\"200ms\" }", "\"200ms\" }\nmessage_rate = 4"),
            &["no message is due within a run of 200 ms", "5 per"],
        ),
        (with("\"200ms\" }", "\"200ms\" }\nmessage_rate = -1"), &["for `probe.stream.message_rate`"]),
        (
            with("\"200ms\" }", "\"200ms\" }\nmessage_rate = \"most\""),
            &["for `probe.stream.message_rate`", "or \"link\""],
        ),
        (
            with("\"200ms\" }", "\"200ms\" }\nmessage_rate = \"link\""),
            &["no rate that messages could be sent at", "add rate to [testbed]"],
        ),
        (with("[blocks]", open), &["`probe.echo_open_loop.message_rate` is missing"]),
        (
            with("[blocks]", &echo.replace("[blocks]", "message_rate = 5\n[blocks]")),
            &["`probe.echo.message_rate` has no meaning", "echo_open_loop keeps a schedule"],
        ),
    ]);
}

#[test]
fn a_run_lasts_a_second_where_nothing_is_said() {
    for (length, expected) in [
        ("", Length::Time(1_000_000_000)),
        // One of two choices is not merged with the default's.
        ("length = { packets = 7 }\n", Length::Packets(7)),
    ] {
        let study = study(&with("length = { time = \"200ms\" }\n", length));
        assert_eq!(study.probes[0].length, expected);
    }
}

#[test]
fn memory_of_tables_needs_new_testbeds() {
    let lasting = write_routed_study("routes = [1000]")
        .replace("topology = \"routed\"", "topology = \"routed\"\nrebuild = false")
        .replace("[\"throughput\"]", "[\"throughput\", \"memory_per_route\"]");
    assert_mistakes(&[(
        lasting.clone(),
        &["memory_per_route is measured when a testbed is built", "leave testbed.rebuild out"],
    )]);
    study(&lasting.replace("rebuild = false", "rebuild = true"));
}

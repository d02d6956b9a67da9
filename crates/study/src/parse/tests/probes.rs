//! `[probe.*]`: metrics, length and pacing.

use crate::parse::tests::{assert_mistakes, study, with};
use stacklab_model::{Length, Pacing, Probe};

#[test]
fn messages_may_leave_at_the_links_rate() {
    let paced = with("\"200ms\" }", "\"200ms\" }\npacket_rate = \"link\"");
    let study = study(&paced.replace("mtu = 1500", "rate = \"1 Gbit/s\""));
    assert_eq!(study.probe(Probe::Stream).unwrap().pacing, Pacing::Link);
}

#[test]
fn each_probe_has_its_pacing() {
    let probes = r#"[probe.stream]
packet_rate = 1000
metrics = ["throughput"]
length = { packets = 1_000_000 }
[probe.echo]
metrics = ["rtt"]
length = { time = "1s" }
[probe.echo_open]
packet_rate = 0.5
metrics = ["rtt_open"]
length = { time = "10s" }
[probe.connect]
metrics = ["connect_time"]
length = { packets = 100 }
"#;
    let study =
        study(&with("[probe.stream]\nmetrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n", probes));
    let pacing = |probe| study.probe(probe).unwrap().pacing;
    assert_eq!(pacing(Probe::Stream), Pacing::Schedule(1000.0));
    assert_eq!(pacing(Probe::Echo), Pacing::Lockstep);
    assert_eq!(pacing(Probe::EchoOpen), Pacing::Schedule(0.5));
    assert_eq!(pacing(Probe::Connect), Pacing::Lockstep);
    assert_eq!(study.probe(Probe::Connect).unwrap().length, Length::Packets(100));
}

#[test]
fn a_mistake_in_a_probe_is_named() {
    let probe = "metrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n";
    let echo = "[probe.echo]\nmetrics = [\"rtt\"]\nlength = { time = \"1s\" }\n[runs]";
    let open = "[probe.echo_open]\nmetrics = [\"rtt_open\"]\nlength = { time = \"1s\" }\n[runs]";
    assert_mistakes(&[
        (with(probe, "").replace("[probe.stream]", "[probe]"), &["`probe` is empty", "one of stream, echo"]),
        (with("probe.stream", "probe.stram"), &["no key `probe.stram`", "did you mean `stream`?"]),
        (with("[\"throughput\"]", "[\"rtt\"]"), &["probe stream does not take `rtt`", "under [probe.echo]"]),
        (
            with("[\"throughput\"]", "[\"goodput\"]"),
            &["no metric `goodput`", "one of throughput, packet_rate"],
        ),
        (
            with("[\"throughput\"]", "[\"loss\", \"loss\"]"),
            &["`loss` stands twice in `probe.stream.metrics`"],
        ),
        (with("metrics = [\"throughput\"]\n", ""), &["`probe.stream.metrics` is missing"]),
        (with("length = { time = \"200ms\" }\n", ""), &["`probe.stream.length` is missing"]),
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
        (
            with("\"200ms\" }", "\"200ms\" }\npacket_rate = 4"),
            &["no message is due within a run of 200 ms", "5 per"],
        ),
        (with("\"200ms\" }", "\"200ms\" }\npacket_rate = -1"), &["for `probe.stream.packet_rate`"]),
        (
            with("\"200ms\" }", "\"200ms\" }\npacket_rate = \"most\""),
            &["for `probe.stream.packet_rate`", "or \"link\""],
        ),
        (
            with("\"200ms\" }", "\"200ms\" }\npacket_rate = \"link\""),
            &["no rate that messages could be sent at", "add rate to [testbed]"],
        ),
        (with("[runs]", open), &["`probe.echo_open.packet_rate` is missing"]),
        (
            with("[runs]", &echo.replace("[runs]", "packet_rate = 5\n[runs]")),
            &["`probe.echo.packet_rate` has no meaning", "echo_open keeps a schedule"],
        ),
        (
            with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace(
                "[runs]",
                "[probe.connect]\nmetrics = [\"connect_time\"]\nlength = { packets = 9 }\n[runs]",
            ),
            &["probe connect needs TCP", "the only transport"],
        ),
    ]);
}

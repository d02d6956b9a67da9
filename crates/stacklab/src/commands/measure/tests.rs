//! From a command line to a specification.

use crate::commands::measure::MeasureOptions;
use crate::commands::measure::study::{
    Arms, arms_at_low_rate, arms_of_connections, message_size, study_text,
};
use clap::Parser;
use stacklab_agent::PORT;
use stacklab_campaign::CampaignError;
use stacklab_campaign::single::{MeasureRequest, check, study_of_one, trial_of};
use stacklab_campaign::sources::StudySource;
use stacklab_campaign::trial::spec::spec_without_rig;
use stacklab_model::{
    Factor, Family, Io, Length, Metric, Pacing, Probe, SizeOf, Transport, TrialSpec, Tuning,
};
use stacklab_study::Study;

#[derive(Parser)]
struct MeasureCommandLine {
    #[command(subcommand)]
    options: MeasureOptions,
}

fn options(line: &str) -> Result<MeasureOptions, String> {
    let words = std::iter::once("measure").chain(line.split_whitespace());
    Ok(MeasureCommandLine::try_parse_from(words).map_err(|error| error.to_string())?.options)
}

fn request(line: &str) -> MeasureRequest {
    options(line).unwrap_or_else(|error| panic!("{line}: {error}")).request()
}

fn study_of(request: &MeasureRequest, family: Family) -> Result<Study, CampaignError> {
    study_of_one(request, "a title".to_owned(), family)
}

fn spec(line: &str) -> TrialSpec {
    let request = request(line);
    check(&request).unwrap();
    let study = study_of(&request, Family::Ipv6).unwrap();
    spec_without_rig(&study, 7, &trial_of(&study))
}

/// Why a valid command line is refused.
fn explain_refusal(line: &str) -> String {
    let request = request(line);
    match check(&request).and_then(|()| study_of(&request, Family::Ipv4).map(drop)) {
        Err(CampaignError::Usage(reason)) => reason,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn what_nobody_says_is_as_users_of_iperf3_expect() {
    let options = options("tcp host").unwrap();
    assert_eq!((options.common().host.as_str(), options.common().port()), ("host", PORT));
    let tcp = spec("tcp host");
    assert_eq!((tcp.message_bytes, tcp.size_of, tcp.flows), (128 << 10, SizeOf::Write, 1));
    assert_eq!(tcp.probe.length, Length::Time(10_000_000_000));
    assert_eq!((tcp.probe.pacing, tcp.probe.warmup_ns), (Pacing::Flood, 0));
    assert_eq!(tcp.probe.interval_ns, 1_000_000_000);
    assert_eq!(*tcp.tuning, Tuning::default());
    assert_eq!(spec("udp host").message_bytes, 1400);
    assert_eq!(spec("echo host").message_bytes, 64);
    assert_eq!(spec("tcp host --size-of payload").message_bytes, 1400);
    for (line, probe, transport) in [
        ("echo host", Probe::Echo, Transport::Udp),
        ("echo host --tcp", Probe::Echo, Transport::Tcp),
        ("echo host --pps 100", Probe::EchoOpenLoop, Transport::Udp),
        ("connect host", Probe::Connect, Transport::Tcp),
    ] {
        assert_eq!((spec(line).probe.probe, spec(line).transport), (probe, transport), "{line}");
    }
}

#[test]
fn short_options_mean_what_they_mean_to_iperf3() {
    let tcp = spec("tcp host -t 5 -l 1K -P 4 -w 256K -C bbr -M 1200 -N -S ef -i 0.5 -O 2");
    assert_eq!((tcp.message_bytes, tcp.flows, tcp.probe.warmup_ns), (1024, 4, 2_000_000_000));
    assert_eq!((tcp.probe.length, tcp.probe.interval_ns), (Length::Time(5_000_000_000), 500_000_000));
    let tuning = &tcp.tuning;
    assert_eq!((tuning.send_buffer, tuning.receive_buffer), (Some(262_144), Some(262_144)));
    assert_eq!((tuning.mss, tuning.nodelay, tuning.dscp), (Some(1200), Some(true), Some(46)));
    assert_eq!(tuning.congestion_control.as_deref(), Some("bbr"));
    assert_eq!(spec("tcp host --nodelay=false").tuning.nodelay, Some(false));
    assert_eq!(spec("udp host -n 500").probe.length, Length::Packets(500));
    assert_eq!(spec("udp host -k 500").probe.length, Length::Packets(500));
    assert!(options("udp host -R -4 -p 7000").is_ok_and(|options| {
        let common = options.common();
        common.reverse && common.ipv4 && common.port() == 7000
    }));
    assert_eq!(request("echo host --poll 50").poll_ns, 50_000);
    for (line, is_at_interface) in [("echo host --at-interface", true), ("echo host", false)] {
        let metrics = spec(line).probe.metrics.clone();
        assert_eq!(metrics.contains(&Metric::RttInterface), is_at_interface, "{line}");
    }
}

#[test]
fn a_rate_is_of_payload() {
    // 10 Mbit/s in messages of 1250 bytes are 1000 a second.
    assert_eq!(spec("udp host -b 10M -l 1250").probe.pacing, Pacing::Schedule(1000.0));
    assert_eq!(spec("udp host --pps 25").probe.pacing, Pacing::Schedule(25.0));
    assert_eq!(spec("udp host -b 0").probe.pacing, Pacing::Flood);
}

#[test]
fn io_is_the_fastest_unless_it_is_named() {
    for (line, io) in [
        ("udp host", Io::Gso),
        ("udp host -b 1M", Io::Send),
        ("udp host --io sendmmsg", Io::Sendmmsg),
        ("tcp host", Io::Sendmmsg),
        ("tcp host --io zerocopy", Io::Zerocopy),
        ("echo host", Io::Send),
    ] {
        assert_eq!(spec(line).io, io, "{line}");
    }
}

#[test]
fn the_cell_tells_what_is_not_as_usual() {
    let line = "tcp host -R -P 2 -C cubic";
    let study = study_of(&request(line), Family::Ipv4).unwrap();
    for (factor, level) in [
        (Factor::Direction, "reverse"),
        (Factor::Flows, "2"),
        (Factor::CongestionControl, "cubic"),
        (Factor::Dscp, ""),
    ] {
        assert_eq!(study.cells[0].level(factor), level, "{factor}");
    }
}

#[test]
fn conflicting_options_are_refused_with_the_way_out() {
    for (line, word) in [
        ("udp host -l 16", "use -l 18 or more"),
        ("tcp host -l 31", "use -l 32 or more"),
        ("udp host -l 65508", "-l 65507 is the most"),
        ("tcp host -l 1G", "-l 16M is the most"),
        ("tcp host --io gso", "choose sendmmsg"),
        ("udp host --io zerocopy", "choose gso"),
        ("echo host -N", "--tcp"),
    ] {
        assert!(explain_refusal(line).contains(word), "{line}: {}", explain_refusal(line));
    }
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    for (line, word) in [
        ("", "tcp"),
        ("sctp host", "sctp"),
        ("tcp", "<HOST>"),
        ("tcp host -t 0", "--time"),
        ("tcp host -n 0", "--packets"),
        ("tcp host -t 1 -n 1", "--packets"),
        ("tcp host -4 -6", "--ipv6"),
        ("tcp host -P 10001", "--flows"),
        ("udp host -b 1M --pps 5", "--pps"),
        ("udp host -C bbr", "-C"),
        ("connect host -P 2", "-P"),
        ("echo host --tcp --udp", "--udp"),
        ("tcp host --from here", "--from"),
        ("tcp host --from 127.0.0.1,here", "address 2: here"),
        ("tcp host --from ::1,::2", "address 2: ::2 is of the family of ::1"),
        ("tcp host --size-of frame", "--size-of"),
        ("tcp host -S 64", "--dscp"),
        ("tcp host -p 70000", "--port"),
    ] {
        let error = options(line).unwrap_err();
        assert!(error.contains(word), "{line}: {error}");
    }
}

#[test]
fn slow_families_take_turns_with_enough_messages() {
    for fast in ["udp host -b 50M", "udp host", "tcp host -b 50M"] {
        assert_eq!(arms_at_low_rate(&request(fast)).unwrap(), None, "{fast}");
    }
    // 128 KiB are too long for slices at this rate, and a packet is not.
    assert_eq!(message_size(&request("tcp host -b 50M"), false), 1400);
    assert_eq!(message_size(&request("tcp host -b 5M -l 8K"), false), 8192);
    assert_eq!(message_size(&request("tcp host"), false), 128 << 10);
    // The last one: eight messages at ten a second.
    for (line, ms) in
        [("tcp host -b 5M -t 60", 2000), ("udp host -b 500k -t 4", 250), ("udp host --pps 10 -t 4", 800)]
    {
        let found = arms_at_low_rate(&request(line)).unwrap();
        assert_eq!(found, Some(Arms::Slow { trial_ns: ms * 1_000_000, send_buffer: None }), "{line}");
    }
    let refused = format!("{:?}", arms_at_low_rate(&request("udp host -b 10k -t 4")).unwrap_err());
    assert!(refused.contains("(-l)") && refused.contains("(-b)") && refused.contains("-t 108"), "{refused}");
}

#[test]
fn each_family_has_its_own_source_address() {
    for line in ["tcp host --from ::1,127.0.0.1 --against ipv4", "connect host --from 127.0.0.1,::1 -R"] {
        let options = options(line).unwrap();
        let target = options.common().target();
        for (there, source) in [("192.0.2.1", "127.0.0.1"), ("2001:db8::1", "::1")] {
            let found = target.source_to(&there.parse().unwrap()).map(ToString::to_string);
            assert_eq!(found.as_deref(), Some(source), "{line}");
        }
    }
}

#[test]
fn families_are_compared_without_shared_machine_load() {
    for (line, arms, metrics) in [
        ("connect host --against ipv4", arms_of_connections(10_000_000_000), &[Metric::ConnectTime][..]),
        (
            "tcp host --against ipv4",
            Arms::Slow { trial_ns: 500_000_000, send_buffer: None },
            &[Metric::Throughput],
        ),
        (
            "echo host --peer stamp --against ipv4",
            Arms::Alternating,
            &[Metric::PathRoundTrip, Metric::EchoLoss],
        ),
    ] {
        let options = options(line).unwrap();
        let text = study_text(options.common(), &options.request(), Family::Ipv4, arms, false).unwrap();
        let study = StudySource { name: "measure.toml".to_owned(), text }.check(None, &[]).unwrap();
        assert_eq!(study.cells.len(), 2, "{line}");
        assert_eq!(study.probes[0].metrics, metrics, "{line}");
    }
}

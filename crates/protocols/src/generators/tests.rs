use super::*;
use proptest::prelude::*;
use stacklab_model::{Family, Length, Transport, Tuning};

/// Output of Debian's iperf3 3.12, iperf 2.1.8 and D-ITG 2.8.1, and of netperf 2.7.1.
macro_rules! output {
    ($name:literal) => {
        include_str!(concat!("outputs/", $name, ".txt"))
    };
}

fn traffic(family: Family, transport: Transport) -> Traffic {
    let [source, listen] = match family {
        Family::Ipv4 => ["10.9.0.1", "10.9.0.2"],
        Family::Ipv6 => ["fd09::1", "fd09::2"],
    };
    let [source, listen] = [source, listen].map(|address| address.parse().unwrap());
    Traffic {
        transport,
        message_bytes: 1200,
        length: Length::Time(1_000_000_000),
        per_second: None,
        round_trips: false,
        flows: 1,
        tuning: Tuning::default(),
        destination: listen,
        source,
        listen,
    }
}

/// What a generator printed over a transport: of the sender's end, of the receiver's, and of the decoder.
fn find_output(generator: Generator, transport: Transport, round_trips: bool) -> Output<'static> {
    let [sender, receiver, decoded] = match (generator, transport, round_trips) {
        (Generator::Iperf3, Transport::Tcp, _) => [output!("iperf3-tcp-sender"), "", ""],
        (Generator::Iperf3, Transport::Udp, _) => [output!("iperf3-udp-sender"), "", ""],
        (Generator::Iperf, Transport::Tcp, _) => {
            [output!("iperf-tcp-sender"), output!("iperf-tcp-receiver"), ""]
        }
        (Generator::Iperf, Transport::Udp, _) => {
            [output!("iperf-udp-sender"), output!("iperf-udp-receiver"), ""]
        }
        (Generator::Netperf, Transport::Tcp, false) => [output!("netperf-tcp-sender"), "", ""],
        (Generator::Netperf, Transport::Udp, false) => [output!("netperf-udp-sender"), "", ""],
        (Generator::Netperf, Transport::Tcp, true) => [output!("netperf-rr-tcp-sender"), "", ""],
        (Generator::Netperf, Transport::Udp, true) => [output!("netperf-rr-udp-sender"), "", ""],
        (Generator::Ditg, Transport::Tcp, _) => ["", "", output!("ditg-tcp-decoded")],
        (Generator::Ditg, Transport::Udp, _) => ["", "", output!("ditg-udp-decoded")],
        (Generator::Stacklab, ..) => panic!("it is not a tool"),
    };
    Output { sender, receiver, decoded }
}

fn tools() -> Vec<(Generator, &'static Tool)> {
    let tools: Vec<_> =
        Generator::ALL.iter().filter_map(|generator| Some((*generator, tool(*generator)?))).collect();
    assert_eq!(tools.len(), Generator::ALL.len() - 1);
    tools
}

fn read(generator: Generator, transport: Transport, round_trips: bool) -> Figures {
    let traffic = Traffic { round_trips, ..traffic(Family::Ipv4, transport) };
    tool(generator).unwrap().figures(&traffic, &find_output(generator, transport, round_trips)).unwrap()
}

fn read_tcp(generator: Generator) -> Figures {
    read(generator, Transport::Tcp, false)
}

fn read_udp(generator: Generator) -> Figures {
    read(generator, Transport::Udp, false)
}

#[test]
fn figures_are_those_that_the_programs_print() {
    let figures = read_tcp(Generator::Iperf3);
    assert_eq!((figures.sent_bytes, figures.received_bytes), (Some(247_416_000), Some(246_302_992)));
    assert_eq!((figures.retransmits, figures.loss), (Some(15), None));

    let figures = read_tcp(Generator::Iperf);
    assert_eq!((figures.sent_bytes, figures.received_bytes), (Some(497_844_060), Some(497_844_060)));
    assert_eq!((figures.bits_per_second, figures.retransmits), (Some(3_982_087_471.0), Some(1)));
    let figures = read_udp(Generator::Iperf);
    assert_eq!((figures.received_bytes, figures.received_messages), (Some(70_446_000), Some(58_705)));
    assert_eq!((figures.sent_messages, figures.loss), (Some(107_677), Some(48_972.0 / 107_677.0)));
    assert_eq!(
        (figures.jitter_rfc3550_ms, figures.delay_mean_ms, figures.jitter_ms),
        (Some(0.995), Some(0.002), None)
    );

    let figures = read_udp(Generator::Ditg);
    assert_eq!((figures.received_bytes, figures.sent_bytes), (Some(64_393_200), None));
    assert_eq!((figures.bits_per_second, figures.jitter_ms), (Some(513_226_134.258), Some(0.016)));
    assert_eq!((figures.delay_mean_ms, figures.jitter_rfc3550_ms), (Some(0.53), None));
    assert_eq!(figures.loss, Some(56_093.0 / 109_754.0));
    assert_eq!(read_tcp(Generator::Ditg).loss, None);

    for transport in Transport::ALL {
        let figures = read(Generator::Netperf, *transport, true);
        let [median, mean, high] = figures.round_trip_ms.unwrap();
        assert!(
            0.0 < median && median <= mean && median <= high && figures.bits_per_second.is_none(),
            "{figures:?}"
        );
    }
}

#[test]
fn received_bytes_agree_with_rate_and_losses() {
    for (generator, _) in tools() {
        for transport in Transport::ALL {
            let figures = read(generator, *transport, false);
            let bytes = figures.received_bytes.unwrap() as f64;
            let rate = figures.bits_per_second.unwrap();
            let seconds = bytes * 8.0 / rate;
            assert!((0.9..1.15).contains(&seconds), "{generator} {transport}: {seconds} s");
            assert_eq!(figures.loss.is_some(), *transport == Transport::Udp, "{generator}");
            if let (Some(sent), Some(received), Some(loss)) =
                (figures.sent_messages, figures.received_messages, figures.loss)
            {
                let lost = 1.0 - received as f64 / sent as f64;
                assert!((lost - loss).abs() < 1e-3, "{generator}: {loss} of {sent}, {received}");
            }
        }
    }
}

#[test]
fn families_share_a_payload_and_differ_in_addresses() {
    for (generator, tool) in tools() {
        for transport in Transport::ALL {
            let lines = Family::ALL.iter().map(|family| {
                let traffic = traffic(*family, *transport);
                let line = (tool.sender)(&traffic);
                let text = line.arguments.join(" ");
                assert!(text.contains("1200"), "{generator} {text}");
                let named = text
                    .replace(&traffic.destination.to_string(), "THERE")
                    .replace(&traffic.source.to_string(), "HERE");
                assert!(named.contains("THERE"), "{generator} {text}");
                named.replace("-6", "-4").replace(",6", ",4").replace("-V ", "")
            });
            let lines: Vec<String> = lines.collect();
            assert_eq!(lines[0], lines[1], "{generator} {transport}");
        }
    }
}

#[test]
fn translated_ends_have_the_family_of_their_addresses() {
    let mut traffic = traffic(Family::Ipv6, Transport::Udp);
    traffic.listen = "10.9.0.2".parse().unwrap();
    for (generator, here, there) in [
        (Generator::Iperf3, "-c fd09::2 -6 -B fd09::1", "-4 -B 10.9.0.2"),
        (Generator::Iperf, "-f b -V -u -c fd09::2", "-f b -u -s -B 10.9.0.2"),
        (Generator::Netperf, "-H fd09::2,6", "-4 -L 10.9.0.2"),
    ] {
        let tool = tool(generator).unwrap();
        let [sender, receiver] = [tool.sender, tool.receiver].map(|line| line(&traffic).arguments.join(" "));
        assert!(sender.contains(here) && receiver.contains(there), "{generator}: {sender}; {receiver}");
    }
}

/// The sender's command line for datagrams over IPv6, after a change.
fn write_line(generator: Generator, change: impl FnOnce(&mut Traffic)) -> String {
    let mut traffic = traffic(Family::Ipv6, Transport::Udp);
    change(&mut traffic);
    let CommandLine { program, arguments } = (tool(generator).unwrap().sender)(&traffic);
    format!("{program} {}", arguments.join(" "))
}

#[test]
fn command_lines_are_the_programs_own() {
    assert_eq!(
        write_line(Generator::Iperf3, |traffic| traffic.flows = 2),
        "iperf3 -c fd09::2 -6 -B fd09::1 -p 5201 -J -i 0 -l 1200 -P 2 -t 1 -u -b 0"
    );
    assert_eq!(
        write_line(Generator::Iperf3, |traffic| {
            (traffic.transport, traffic.length) = (Transport::Tcp, Length::Packets(7));
            (traffic.tuning.nodelay, traffic.tuning.dscp) = (Some(true), Some(46));
        }),
        "iperf3 -c fd09::2 -6 -B fd09::1 -p 5201 -J -i 0 -l 1200 -P 1 -k 7 -N -S 184"
    );
    assert_eq!(
        write_line(Generator::Iperf, |traffic| {
            traffic.per_second = Some(100.4);
            traffic.length = Length::Time(250_000_000);
        }),
        "iperf -p 5001 -e -f b -V -u -c fd09::2 -B fd09::1 -l 1200 -t 0.25 -b 100pps"
    );
    assert_eq!(
        write_line(Generator::Ditg, |traffic| traffic.per_second = Some(100.0)),
        "ITGSend -a fd09::2 -rp 8999 -T UDP -c 1200 -C 100 -t 1000"
    );
    let rr = write_line(Generator::Netperf, |traffic| traffic.round_trips = true);
    assert!(
        rr.starts_with("netperf -H fd09::2,6 -L fd09::1,6 -p 12865 -t UDP_RR -P 0 -l 1 -- -r 1200,1200"),
        "{rr}"
    );
}

/// The reason against an output, of which both ends print the same.
fn refuse(generator: Generator, sender: &str, decoded: &str) -> String {
    let output = Output { sender, receiver: sender, decoded };
    tool(generator).unwrap().figures(&traffic(Family::Ipv4, Transport::Udp), &output).unwrap_err()
}

#[test]
fn nonsense_is_refused_with_what_is_wrong_with_it() {
    assert!(refuse(Generator::Iperf3, "yes\n", "").contains("not JSON"));
    let busy = r#"{"error": "the server is busy running a test. try again later"}"#;
    assert_eq!(
        refuse(Generator::Iperf3, busy, ""),
        "it says: the server is busy running a test. try again later"
    );
    let other = output!("iperf3-udp-sender").replace("\"blksize\":\t1200", "\"blksize\":\t1448");
    assert_eq!(refuse(Generator::Iperf3, &other, ""), "it sent 1448 bytes per message, planned are 1200");
    assert_eq!(refuse(Generator::Iperf, "yes\n", ""), "the sender's end prints no figures");
    assert!(refuse(Generator::Netperf, "LOCAL_SEND_SIZE=1448\n", "").contains("1448 bytes"));
    assert_eq!(refuse(Generator::Netperf, "yes\n", ""), "it prints no LOCAL_SEND_SIZE");
    assert_eq!(refuse(Generator::Ditg, "", "yes\n"), "ITGDec prints no figures");
    let none =
        output!("ditg-udp-decoded").replace("Total packets            =         53661", "Total packets = 0");
    assert_eq!(refuse(Generator::Ditg, "", &none), "its log has no packet");
    // What it quotes is short, and does nothing to a terminal.
    let long = format!("{{\"error\": \"\\u001b[2J{}\"}}", "x".repeat(10_000));
    let figures = refuse(Generator::Iperf3, &long, "");
    assert!(figures.len() < 400 && figures.starts_with("it says: \u{fffd}[2Jx"), "{figures}");
    let more = output!("iperf3-udp-sender").replace("\"lost_percent\":\t", "\"lost_percent\":\t9");
    assert!(refuse(Generator::Iperf3, &more, "").starts_with("it says that it lost "));
}

proptest! {
    #[test]
    fn a_torn_or_changed_output_is_read_or_refused(cut in 0_usize..3000, put in ".{0,8}", generator in 0_usize..4, tcp: bool) {
        let (generator, tool) = tools()[generator];
        let transport = if tcp { Transport::Tcp } else { Transport::Udp };
        let printed = find_output(generator, transport, false);
        let torn = [printed.sender, printed.receiver, printed.decoded].map(|text| {
            let place = text.char_indices().map(|(place, _)| place).nth(cut).unwrap_or(text.len());
            format!("{}{put}", &text[..place])
        });
        let output = Output { sender: &torn[0], receiver: &torn[1], decoded: &torn[2] };
        let _ = tool.figures(&traffic(Family::Ipv4, transport), &output);
    }
}

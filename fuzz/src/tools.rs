//! Other tools: their result files, what they print as generators, the protocol of iperf3, and what resolvers and web
//! servers answer to `path`.

use crate::{Bytes, is_plain};
use stacklab_import::{Content, Format, read, runs};
use stacklab_model::{Family, Generator, Length, Transport, Tuning, Value};
use stacklab_path::fuzzing::{dns_addresses, http_head};
use stacklab_protocols::generators::{Output, Traffic, tool};
use stacklab_protocols::iperf3::{
    MAX_STREAMS, Parameters, Results, State, answer_to, is_answer, read_header, write_header,
};

/// The first byte chooses a format; 0 has it found from the content.
pub fn import(data: &[u8]) {
    let mut data = Bytes(data);
    let names = Format::names();
    let number = data.number(1) as usize % (names.len() + 1);
    let chosen = number.checked_sub(1).and_then(|place| Format::find_by_name(names[place]));
    let file = match read(data.0, chosen) {
        Ok(file) => file,
        Err(error) => {
            assert!(is_plain(&error.to_string()), "{error}");
            return;
        }
    };
    if let Content::Tests(tests) = &file.content {
        for test in tests {
            assert!(test.values.values().all(is_figure), "{test:?}");
            assert!(test.flows > 0, "{test:?}");
        }
    }
    if let Ok(runs) = runs(std::slice::from_ref(&file)) {
        for (_, run, _) in &runs {
            assert!(run.values.iter().all(|(_, value)| is_figure(value)), "{run:?}");
            assert!(run.values.keys().all(|metric| run.spec.probe.metrics.contains(metric)), "{run:?}");
        }
        let mut trials: Vec<_> =
            runs.iter().map(|(_, run, _)| (run.trial.block, run.trial.position)).collect();
        trials.sort_unstable();
        trials.dedup();
        assert_eq!(trials.len(), runs.len(), "a record has each block and position once");
    }
}

fn is_figure(value: &Value) -> bool {
    value.measured().is_none_or(f64::is_finite)
}

/// The first byte chooses a generator, its transport and its probe; then what the sender's end, the receiver's and the
/// reader of its log printed, each up to a byte of zero. Messages have 1200 bytes.
pub fn generator_output(data: &[u8]) {
    let mut data = Bytes(data);
    let chosen = data.number(1) as usize;
    let generators: Vec<_> = Generator::ALL.iter().filter_map(|generator| tool(*generator)).collect();
    let generator = chosen % generators.len();
    let rest = chosen / generators.len();
    let transport = Transport::ALL[rest % Transport::ALL.len()];
    let rest = rest / Transport::ALL.len();
    let address = std::net::Ipv4Addr::LOCALHOST.into();
    let traffic = Traffic {
        transport,
        message_bytes: 1200,
        length: Length::Time(1_000_000_000),
        per_second: None,
        round_trips: rest % 2 == 1,
        flows: 1,
        tuning: Tuning::default(),
        destination: address,
        source: address,
        listen: address,
    };
    let mut printed = data.0.splitn(3, |byte| *byte == 0).map(String::from_utf8_lossy);
    let [sender, receiver, decoded] = std::array::from_fn(|_| printed.next().unwrap_or_default());
    let output = Output { sender: &sender, receiver: &receiver, decoded: &decoded };
    let figures = match generators[generator].figures(&traffic, &output) {
        Ok(figures) => figures,
        Err(reason) => {
            assert!(is_plain(&reason) && !reason.is_empty() && reason.chars().count() <= 300, "{reason}");
            return;
        }
    };
    assert!(figures.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "{figures:?}");
    let others =
        [figures.bits_per_second, figures.jitter_ms, figures.jitter_rfc3550_ms, figures.delay_mean_ms];
    let mut all = others.into_iter().flatten().chain(figures.round_trip_ms.into_iter().flatten());
    assert!(all.all(|figure| figure.is_finite() && figure >= 0.0), "{figures:?}");
}

/// What a client or server of iperf3 sends.
pub fn iperf3(data: &[u8]) {
    if let Some(state) = data.first().and_then(|byte| State::of(*byte)) {
        assert_eq!(state.byte(), data[0]);
    }
    for header in [read_header(8, data), read_header(4, data)].into_iter().flatten() {
        let mut message = [0; 16];
        write_header(header, 8, &mut message);
        assert_eq!(read_header(8, &message).map(|read| read.sequence), Some(header.sequence));
    }
    if let Some(answer) = answer_to(data) {
        assert!(is_answer(&answer));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(parameters) = Parameters::parse(text) {
        assert!((1..=MAX_STREAMS).contains(&parameters.parallel));
        assert_eq!(Parameters::parse(&parameters.to_json()), Ok(parameters));
    }
    if let Ok(results) = Results::parse(text) {
        assert_eq!(Results::parse(&results.to_json()), Ok(results));
    }
}

/// Answers of resolvers, and heads of web servers.
pub fn path_answer(data: &[u8]) {
    for family in [Family::Ipv4, Family::Ipv6] {
        if let Ok(addresses) = dns_addresses(data, family) {
            assert!(addresses.iter().all(|address| Family::of(*address) == family));
        }
    }
    match http_head(data) {
        // Of a whole header only the end is missing.
        Ok(Some(head)) => assert!(head.status < 1000, "{head:?}"),
        // Behind an announcement (1xx) the answer itself follows.
        Ok(None) => assert!(
            !data.windows(4).any(|end| end == b"\r\n\r\n")
                || !data.starts_with(b"HTTP")
                || data.starts_with(b"HTTP/1.1 1")
                || data.starts_with(b"HTTP/1.0 1")
        ),
        Err(reason) => assert!(is_plain(&reason), "{reason}"),
    }
}

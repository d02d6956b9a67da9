//! What comes from this machine's users and kernel: words of command lines and records, requests of browsers, /proc.

use stacklab_campaign::trial::other_load;
use stacklab_guests::Placement;
use stacklab_model::{
    CellSettings, IoChoice, Rate, Services, System, Systems, parse_duration, parse_ratio, print_duration,
};
use stacklab_serve::fuzzing::admits_request;
use stacklab_testbed::fuzzing::is_process;
use stacklab_traffic::agent::Network;
use stacklab_traffic::fuzzing::proc_files;
use stacklab_traffic::host::zone::ListenAddress;
use std::fmt::{Debug, Display};
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Words for factors, quantities and addresses: what is understood is printed as what is understood as the same.
pub fn words(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    same::<Network>(&text);
    same::<Systems>(&text);
    same::<Services>(&text);
    same::<IoChoice>(&text);
    same::<Placement>(&text);
    same::<Rate>(&text);
    let _ = text.parse::<ListenAddress>();
    if let Ok(System::Ssh(host)) = text.parse() {
        assert!(
            !host.starts_with('-') && !host.contains([' ', ';', '$', '`', '\'', '"', '&', '|', '\n']),
            "{host}"
        );
    }
    if let Ok(nanoseconds) = parse_duration(&text) {
        assert!(nanoseconds <= 1_000_000_000_000_000_000 && !print_duration(nanoseconds).is_empty());
    }
    if let Ok(ratio) = parse_ratio(&text) {
        assert!(ratio > 0.0 && ratio < 1.0, "{ratio}");
    }
    if let Ok(settings) = serde_json::from_slice::<CellSettings>(data) {
        let written = serde_json::to_string(&settings).expect("settings are JSON");
        assert_eq!(serde_json::from_str::<CellSettings>(&written).expect("they were written here"), settings);
    }
}

/// Asserts that a word that is understood reads back as it is printed.
fn same<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string().parse::<T>().expect("it was printed here"), read, "{text:?}");
    }
}

/// A request for the page: a query, then a header a line. None is answered without the token, nor on loopback by
/// another name.
pub fn page_request(data: &[u8]) {
    const TOKEN: &str = "0123456789abcdef";
    let mut lines = data.split(|byte| *byte == b'\n');
    let query = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let headers: Vec<(&[u8], &[u8])> = lines
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
        .collect();
    let has_token = data.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let bound = SocketAddr::from((address, 8000));
        if admits_request(bound, TOKEN, &headers, &query) {
            assert!(has_token);
            let host = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
            let host =
                host.map_or(String::new(), |(_, host)| String::from_utf8_lossy(host).to_ascii_lowercase());
            let is_loopback =
                host.starts_with("localhost") || host.starts_with("127.") || host.starts_with('[');
            assert!(is_loopback || !address.is_loopback(), "{host}");
        }
    }
}

/// Files of /proc, and two lists of all processes with a zero byte between.
pub fn proc(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = proc_files(&text);
    let _ = text.lines().take(8).map(is_process).count();
    let load =
        other_load::between(text.split_once('\0').map_or([&text, &text], |(before, after)| [before, after]));
    assert!((0.0..=1.0).contains(&load.share_of_others()), "{load:?}");
}

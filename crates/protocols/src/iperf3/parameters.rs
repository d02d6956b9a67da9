//! The parameters of a test, as the client sends them.

use crate::iperf3::json::{count, is_set, object, small, text};
use crate::iperf3::{
    MAX_BLOCK_BYTES, MAX_DATAGRAM_BYTES, MAX_HEADER_BYTES, MAX_OMIT_SECONDS, MAX_SECONDS, MAX_STREAMS,
    Refusal,
};
use serde_json::{Map, Value, json};
use stacklab_model::{Direction, Length, Pacing, Transport, TrialSpec};

/// Longest name of a congestion control (TCP_CA_NAME_MAX).
const MAX_NAME_LENGTH: usize = 15;
/// A block that the client does not name (DEFAULT_TCP_BLKSIZE, DEFAULT_UDP_BLKSIZE).
const TCP_BLOCK: u32 = 128 << 10;
const UDP_BLOCK: u32 = 1460;

/// A test, seen from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    pub(crate) transport: Transport,
    /// Seconds that are left out of the figures, before the others.
    pub(crate) omit_s: u32,
    /// Seconds; 0 where bytes or blocks end the test.
    pub(crate) time_s: u32,
    /// Bytes, and blocks, of all streams together that end the test; 0 where they do not.
    pub(crate) bytes: u64,
    /// As `bytes`.
    pub blocks: u64,
    pub(crate) mss: Option<u32>,
    pub(crate) nodelay: bool,
    /// Streams of each direction.
    pub parallel: u32,
    /// Whether the server sends.
    pub(crate) reverse: bool,
    pub(crate) bidirectional: bool,
    /// Socket buffers, bytes.
    pub(crate) window: Option<u32>,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bits per second of each stream; 0: unlimited.
    pub(crate) bandwidth: u64,
    /// IP's type of service, or traffic class.
    pub(crate) tos: u8,
    pub(crate) congestion: Option<String>,
    /// Whether numbers of datagrams have 64 bits.
    pub(crate) long_counters: bool,
    pub(crate) get_server_output: bool,
    pub(crate) client_version: Option<String>,
}

impl Parameters {
    /// A test of one stream without further settings, in blocks of this size.
    pub(crate) fn new(transport: Transport, block_bytes: u32) -> Self {
        Parameters {
            transport,
            omit_s: 0,
            time_s: 0,
            bytes: 0,
            blocks: 0,
            mss: None,
            nodelay: false,
            parallel: 1,
            reverse: false,
            bidirectional: false,
            window: None,
            block_bytes,
            bandwidth: 0,
            tos: 0,
            congestion: None,
            long_counters: transport == Transport::Udp,
            get_server_output: false,
            client_version: None,
        }
    }

    /// Of a trial. The client receives in the direction [`Direction::Reverse`].
    pub fn of(spec: &TrialSpec, direction: Direction) -> Self {
        let (time_s, blocks) = match spec.probe.length {
            Length::Time(ns) => (round_up_to_seconds(ns), 0),
            Length::Packets(blocks) => (0, blocks),
        };
        // iperf3's rate is that of each stream.
        let bandwidth = match spec.probe.pacing {
            Pacing::Schedule(per_second) => {
                let bits = per_second * f64::from(spec.message_bytes) * 8.0;
                (bits / f64::from(spec.flows)).round().max(1.0) as u64
            }
            _ => 0,
        };
        let tuning = &spec.tuning;
        Parameters {
            omit_s: round_up_to_seconds(spec.probe.warmup_ns),
            time_s,
            blocks,
            mss: tuning.mss,
            nodelay: tuning.nodelay.unwrap_or(false),
            parallel: spec.flows,
            reverse: direction == Direction::Reverse,
            bidirectional: direction == Direction::Both,
            window: tuning.send_buffer,
            bandwidth,
            tos: tuning.dscp.map_or(0, |point| point << 2),
            congestion: tuning.congestion_control.clone(),
            client_version: Some(format!("stacklab {}", env!("CARGO_PKG_VERSION"))),
            ..Parameters::new(spec.transport, spec.message_bytes)
        }
    }

    /// Reads parameters.
    pub fn parse(json: &str) -> Result<Self, (Refusal, String)> {
        let fields = object(json).map_err(refuse_unreadable)?;
        let transport = read_transport(&fields)?;
        let parameters = Self::read(&fields, transport).map_err(refuse_unreadable)?;
        parameters.check()?;
        Ok(parameters)
    }

    fn read(fields: &Map<String, Value>, transport: Transport) -> Result<Self, String> {
        let default_block = match transport {
            Transport::Tcp => TCP_BLOCK,
            Transport::Udp => UDP_BLOCK,
        };
        Ok(Parameters {
            omit_s: small(fields, "omit")?.unwrap_or(0),
            time_s: small(fields, "time")?.unwrap_or(0),
            bytes: count(fields, "num")?.unwrap_or(0),
            blocks: count(fields, "blockcount")?.unwrap_or(0),
            mss: read_positive(fields, "MSS")?,
            nodelay: is_set(fields, "nodelay")?,
            parallel: small(fields, "parallel")?.unwrap_or(1),
            reverse: is_set(fields, "reverse")?,
            bidirectional: is_set(fields, "bidirectional")?,
            window: read_positive(fields, "window")?,
            bandwidth: count(fields, "bandwidth")?.unwrap_or(0),
            tos: (small(fields, "TOS")?.unwrap_or(0) & 0xff) as u8,
            congestion: text(fields, "congestion").filter(|name| !name.is_empty()),
            long_counters: is_set(fields, "udp_counters_64bit")?,
            get_server_output: is_set(fields, "get_server_output")?,
            client_version: text(fields, "client_version"),
            ..Parameters::new(transport, read_positive(fields, "len")?.unwrap_or(default_block))
        })
    }

    /// Whether iperf3 itself takes them.
    fn check(&self) -> Result<(), (Refusal, String)> {
        if self.time_s > MAX_SECONDS || self.omit_s > MAX_OMIT_SECONDS {
            return Err((Refusal::Duration, format!("{} s after {} s", self.time_s, self.omit_s)));
        }
        if !(1..=MAX_STREAMS).contains(&self.parallel) {
            return Err((Refusal::Streams, format!("{} streams", self.parallel)));
        }
        let blocks = match self.transport {
            Transport::Tcp => 1..=MAX_BLOCK_BYTES,
            Transport::Udp => MAX_HEADER_BYTES..=MAX_DATAGRAM_BYTES,
        };
        if !blocks.contains(&self.block_bytes) {
            return Err((Refusal::Block, format!("blocks of {} bytes", self.block_bytes)));
        }
        if self.congestion.as_ref().is_some_and(|name| !is_congestion_name(name)) {
            return Err((Refusal::Parameters, "a congestion control of no such name".to_owned()));
        }
        Ok(())
    }

    /// As a client sends them.
    pub fn to_json(&self) -> String {
        let mut fields = json!({
            (if self.transport == Transport::Tcp { "tcp" } else { "udp" }): true,
            "omit": self.omit_s,
            "time": self.time_s,
            "num": self.bytes,
            "blockcount": self.blocks,
            "parallel": self.parallel,
            "len": self.block_bytes,
            "bandwidth": self.bandwidth,
            "pacing_timer": 1000,
            "TOS": self.tos,
            "MSS": self.mss,
            "nodelay": self.nodelay.then_some(true),
            "reverse": self.reverse.then_some(true),
            "bidirectional": self.bidirectional.then_some(true),
            "window": self.window,
            "congestion": self.congestion,
            "udp_counters_64bit": self.long_counters.then_some(1),
            "get_server_output": self.get_server_output.then_some(1),
            "client_version": self.client_version,
        });
        // iperf3 sends no fields without a value.
        fields.as_object_mut().expect("it is an object").retain(|_, value| !value.is_null());
        fields.to_string()
    }
}

fn round_up_to_seconds(ns: u64) -> u32 {
    ns.div_ceil(1_000_000_000) as u32
}

fn refuse_unreadable(reason: String) -> (Refusal, String) {
    (Refusal::Parameters, reason)
}

fn read_transport(fields: &Map<String, Value>) -> Result<Transport, (Refusal, String)> {
    let is_tcp = is_set(fields, "tcp").map_err(refuse_unreadable)?;
    let is_udp = is_set(fields, "udp").map_err(refuse_unreadable)?;
    match (is_tcp, is_udp) {
        (true, false) => Ok(Transport::Tcp),
        (false, true) => Ok(Transport::Udp),
        _ => Err((Refusal::Unsupported, "it must name either TCP or UDP".to_owned())),
    }
}

/// A number that takes the place of a default only if it is more than 0.
fn read_positive(fields: &Map<String, Value>, name: &str) -> Result<Option<u32>, String> {
    Ok(small(fields, name)?.filter(|number| *number > 0))
}

fn is_congestion_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_sends_is_read() {
        // By iperf 3.12: iperf3 -c 198.18.0.2 -u -b 10M -P 2 -l 1000 -t 2 --bidir -S 0x10
        let text = r#"{"udp":true,"omit":0,"time":2,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,
            "len":1000,"bandwidth":10000000,"pacing_timer":1000,"TOS":16,"udp_counters_64bit":1,
            "client_version":"3.12"}"#;
        let read = Parameters::parse(text).unwrap();
        let sent = Parameters {
            time_s: 2,
            parallel: 2,
            bidirectional: true,
            bandwidth: 10_000_000,
            tos: 16,
            client_version: Some("3.12".to_owned()),
            ..Parameters::new(Transport::Udp, 1000)
        };
        assert_eq!(read, sent);
        assert_eq!(Parameters::parse(&read.to_json()), Ok(read));
    }

    #[test]
    fn all_that_a_client_can_say_reads_back() {
        let all = Parameters {
            omit_s: 1,
            bytes: 1 << 40,
            blocks: 7,
            mss: Some(1000),
            nodelay: true,
            reverse: true,
            window: Some(1 << 20),
            congestion: Some("reno".to_owned()),
            get_server_output: true,
            ..Parameters::new(Transport::Tcp, 1 << 20)
        };
        assert_eq!(Parameters::parse(&all.to_json()), Ok(all));
    }

    #[test]
    fn what_no_test_has_is_refused_by_iperf3s_own_number() {
        for (text, refusal) in [
            (r#"{"tcp":true"#, Refusal::Parameters),
            ("[]", Refusal::Parameters),
            (r#"{"sctp":true}"#, Refusal::Unsupported),
            (r#"{"tcp":true,"len":2000000}"#, Refusal::Block),
            (r#"{"udp":true,"len":15}"#, Refusal::Block),
            (r#"{"udp":true,"len":1e300}"#, Refusal::Parameters),
            (r#"{"tcp":true,"parallel":129}"#, Refusal::Streams),
            (r#"{"tcp":true,"parallel":0}"#, Refusal::Streams),
            (r#"{"tcp":true,"time":86401}"#, Refusal::Duration),
            (r#"{"tcp":true,"congestion":"../reno"}"#, Refusal::Parameters),
        ] {
            assert_eq!(Parameters::parse(text).unwrap_err().0, refusal, "{text}");
        }
    }
}

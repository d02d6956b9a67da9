//! The options of `stacklab measure`.

use crate::quantities::{bytes, dscp, io, per_second, rate, some_time, time};
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use stacklab_agent::client::Target;
use stacklab_agent::source::SourceAddresses;
use stacklab_agent::tls::Fingerprint;
use stacklab_campaign::single::{MeasureRequest, Pace};
use stacklab_model::{Direction, Family, Io, Length, Pacing, Probe, SizeOf, Transport, Tuning};
use stacklab_protocols::stamp::TimeFormat;
use std::path::PathBuf;

/// The time of a search without -t.
const SEARCH_TIME_NS: u64 = 120_000_000_000;
/// Packets per second to a STAMP reflector without --pps.
const STAMP_PER_SECOND: f64 = 100.0;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum MeasureOptions {
    /// Throughput, retransmits and CPU time of a TCP stream
    #[command(after_help = "\
Examples:
  stacklab measure tcp server.example
  stacklab measure tcp server.example -6 -t 30 -R
  stacklab measure tcp 192.0.2.7 -l 1400 -N -C bbr --json > run.json")]
    Tcp {
        #[command(flatten)]
        common: CommonOptions,
        #[command(flatten)]
        stream: StreamOptions,
        /// Also measure one-way delays; each message is then received when it arrives, which costs
        /// throughput
        #[arg(long)]
        delays: bool,
        #[command(flatten)]
        tcp: TcpTuning,
    },
    /// Throughput, message rate, loss, jitter and delay of a UDP stream: a flood, or at a rate (-b, --pps)
    #[command(after_help = "\
Examples:
  stacklab measure udp server.example              a flood (iperf3 would send 1 Mbit/s)
  stacklab measure udp server.example -b 100M
  stacklab measure udp server.example --against ipv4    IPv6 compared with IPv4
  stacklab measure udp server.example -l 64 --against ipv4 --search 0.5%    the highest loads without more loss
  stacklab measure udp 2001:db8::7 --pps 10000 -l 64")]
    Udp {
        #[command(flatten)]
        common: CommonOptions,
        #[command(flatten)]
        stream: StreamOptions,
        /// Search the highest load of each family without more than this share of lost or late messages, such as 0.5%:
        /// both together, in turns of a slice each at their own loads
        #[arg(long, value_name = "LOSS", value_parser = loss_share, requires = "against", conflicts_with_all = ["rate", "pps", "bidir", "packets"])]
        search: Option<u32>,
    },
    /// Round trips of a message out and back, one after another or on a schedule (--pps)
    #[command(after_help = "\
Examples:
  stacklab measure echo server.example
  stacklab measure echo server.example --tcp -l 1K -n 10000
  stacklab measure echo server.example --pps 1000    on a schedule, from the intended send time
  stacklab measure echo router.example --peer stamp  any STAMP or TWAMP-Light reflector: delays and losses by direction
  stacklab measure echo router.example --peer stamp --against ipv4    both families to one reflector, with a verdict")]
    Echo {
        #[command(flatten)]
        common: CommonOptions,
        #[command(flatten)]
        message: MessageOptions,
        /// Over UDP (default)
        #[arg(long, conflicts_with = "tcp")]
        udp: bool,
        /// Over TCP
        #[arg(long)]
        tcp: bool,
        /// Messages per second on a fixed schedule, instead of one outstanding
        #[arg(long, value_name = "N", value_parser = per_second)]
        pps: Option<f64>,
        /// Seconds between two rows of the output; 0 for none
        #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = time)]
        interval: u64,
        /// Microseconds for which both ends poll before they sleep: excludes CPU wake-up from the round trip
        #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
        poll: u32,
        /// Also measure the round trip between the kernel's timestamps; costs one more system call per message
        #[arg(long, conflicts_with_all = ["tcp", "pps"])]
        at_interface: bool,
        #[command(flatten)]
        peer: StampOptions,
        #[command(flatten)]
        tuning: TcpTuning,
    },
    /// Time to open a TCP connection, one after another
    #[command(after_help = "\
Examples:
  stacklab measure connect server.example -n 1000
  stacklab measure connect server.example --against ipv4    IPv6 compared with IPv4")]
    Connect {
        #[command(flatten)]
        common: CommonOptions,
        #[command(flatten)]
        tuning: TcpTuning,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CommonOptions {
    /// Name or address of the host that runs `stacklab agent --listen`, or its addresses separated by commas; a
    /// link-local address needs this host's interface to it: fe80::1%eth0
    pub host: String,
    /// Compare the other family with this one, interleaved, until there is a verdict or -t has passed (tcp, udp,
    /// connect, and echo without --pps); with another --peer than agent, in turns (echo --peer stamp also with --pps)
    #[arg(long, value_name = "FAMILY", value_parser = family, conflicts_with_all = ["ipv4", "ipv6"])]
    pub against: Option<Family>,
    /// Keep the record of --against in this file
    #[arg(long, value_name = "FILE", requires = "against")]
    pub out: Option<PathBuf>,
    /// Over IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Over IPv6
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// Port on which the agent or peer listens (the traffic uses ports that the kernels choose)
    /// [default: 5202; iperf3: 5201]
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// The program on HOST: stacklab's `agent`; an `iperf3` server (tcp and udp only), whose figures are unverified;
    /// or a `stamp` session-reflector (echo only)
    #[arg(long, value_name = "PEER", default_value = "agent")]
    pub peer: Peer,
    /// File with the agent's key. Default: STACKLAB_KEY in the environment, or a prompt on the
    /// terminal
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Use TLS 1.3, and accept only the agent with this fingerprint, which `stacklab agent --listen
    /// --tls` prints
    #[arg(long, value_name = "FINGERPRINT")]
    pub tls: Option<Fingerprint>,
    /// Source address, or one of each family as IPV4,IPV6 (both with --against); default: the kernel chooses
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<SourceAddresses>,
    /// Seconds to measure, or a time such as 500ms; default 10 unless -n is given, and 120 with --search
    #[arg(short, long, value_name = "SECONDS", conflicts_with = "packets", value_parser = some_time)]
    time: Option<u64>,
    /// Messages (or connections) to measure, instead of a time
    #[arg(short = 'n', visible_short_alias = 'k', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Seconds of warm-up traffic, left out of all figures
    #[arg(short = 'O', long, value_name = "SECONDS", default_value = "0", value_parser = time)]
    warmup: u64,
    /// Reverse: HOST sends (or begins the echo)
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Socket buffers in bytes, both directions (the kernel doubles them); K and M are powers of 1024
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes)]
    buffer: Option<u32>,
    /// Differentiated services code point, 0 to 63 or a name such as ef or af41
    #[arg(short = 'S', long, value_name = "POINT", value_parser = dscp)]
    dscp: Option<u8>,
    /// Print only the run, as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct MessageOptions {
    /// Bytes per message, at least 32 (udp: 18); K and M are powers of 1024 [default: tcp 128K, udp 1400, echo 64]
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = bytes)]
    size: Option<u32>,
    /// What the size is of: `write`, what one call writes; `payload`, one packet per message, validated; other traffic
    /// or offloads make the run invalid
    #[arg(long, value_name = "MEANING", default_value = "write", value_parser = size_of)]
    size_of: SizeOf,
}

/// A share such as `0.5%`, `0.5 %` or `0.005`, in millionths.
fn loss_share(text: &str) -> Result<u32, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse(),
    };
    match share {
        Ok(share) if (0.0..1.0).contains(&share) => Ok((share * 1e6).round() as u32),
        _ => Err("expected a share below 100 %, such as 0.5% or 0.005; 0 for no loss at all".to_owned()),
    }
}

fn family(text: &str) -> Result<Family, String> {
    text.parse().map_err(|_| "expected ipv4 or ipv6".to_owned())
}

fn size_of(text: &str) -> Result<SizeOf, String> {
    match text.parse() {
        Ok(SizeOf::Frame) | Err(_) => Err("expected write or payload".to_owned()),
        Ok(size_of) => Ok(size_of),
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct StreamOptions {
    #[command(flatten)]
    message: MessageOptions,
    /// Parallel flows, each with a separate socket
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    flows: u32,
    /// Both directions at the same time
    #[arg(long, conflicts_with = "reverse")]
    bidir: bool,
    /// Bits of payload per second, all flows together; k, M and G are powers of 1000; default or 0: unlimited
    #[arg(short = 'b', long, value_name = "RATE", conflicts_with = "pps", value_parser = rate)]
    rate: Option<f64>,
    /// Messages per second, all flows together, instead of -b
    #[arg(long, value_name = "N", value_parser = per_second)]
    pps: Option<f64>,
    /// System calls: auto, send (one message per call), sendmmsg (several per call), gso (GSO
    /// batches, UDP), zerocopy (TCP)
    #[arg(long, value_name = "IO", default_value = "auto", value_parser = io)]
    io: Choice,
    /// Seconds between two rows of the output; 0 for none
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = time)]
    interval: u64,
}

/// An alias, since clap takes an `Option` for an argument that may be left out.
type Choice = std::option::Option<Io>;

#[derive(Debug, Clone, Args)]
pub(crate) struct TcpTuning {
    /// TCP congestion control, for example cubic or bbr
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// TCP maximum segment size, bytes
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    mss: Option<u32>,
    /// Set TCP_NODELAY, or clear it (--nodelay=false); default: off for floods
    #[arg(short = 'N', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    nodelay: Option<bool>,
}

impl MeasureOptions {
    pub(crate) fn common(&self) -> &CommonOptions {
        let (MeasureOptions::Tcp { common, .. }
        | MeasureOptions::Udp { common, .. }
        | MeasureOptions::Echo { common, .. }
        | MeasureOptions::Connect { common, .. }) = self;
        common
    }

    pub(crate) fn stamp(&self) -> Option<&StampOptions> {
        let MeasureOptions::Echo { peer, .. } = self else { return None };
        Some(peer)
    }

    pub(crate) fn request(&self) -> MeasureRequest {
        match self {
            MeasureOptions::Tcp { common, stream, delays, tcp } => {
                let request = common.request(Probe::Stream, Transport::Tcp, Some(tcp));
                MeasureRequest { delays: *delays, ..stream.request(request) }
            }
            MeasureOptions::Udp { common, stream, search } => {
                let request = stream.request(common.request(Probe::Stream, Transport::Udp, None));
                // A block of a search takes some seconds.
                let length = match (search, common.time) {
                    (Some(_), None) => Length::Time(SEARCH_TIME_NS),
                    _ => request.length,
                };
                MeasureRequest { length, searched_loss_ppm: *search, ..request }
            }
            MeasureOptions::Echo {
                common, message, tcp, pps, interval, poll, at_interface, tuning, ..
            } => {
                let (probe, pacing) = match (pps, common.peer) {
                    (Some(pps), _) => (Probe::EchoOpenLoop, Pacing::Schedule(*pps)),
                    (None, Peer::Stamp) => (Probe::EchoOpenLoop, Pacing::Schedule(STAMP_PER_SECOND)),
                    (None, _) => (Probe::Echo, Pacing::Lockstep),
                };
                let transport = if *tcp { Transport::Tcp } else { Transport::Udp };
                MeasureRequest {
                    pace: Pace::As(pacing),
                    size: message.size,
                    size_of: message.size_of,
                    interval_ns: *interval,
                    poll_ns: u64::from(*poll) * 1000,
                    at_interface: *at_interface,
                    ..common.request(probe, transport, Some(tuning))
                }
            }
            MeasureOptions::Connect { common, tuning } => {
                common.request(Probe::Connect, Transport::Tcp, Some(tuning))
            }
        }
    }
}

impl CommonOptions {
    pub(crate) fn target(&self) -> Target<'_> {
        let families = [(self.ipv4, Family::Ipv4), (self.ipv6, Family::Ipv6)];
        Target {
            host: &self.host,
            port: self.port(),
            family: families.into_iter().find_map(|(only, family)| only.then_some(family)),
            from: self.from.as_ref(),
            key_file: self.key_file.as_deref(),
            tls: self.tls,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(match self.peer {
            Peer::Agent => stacklab_agent::PORT,
            Peer::Iperf3 => stacklab_protocols::iperf3::PORT,
            Peer::Stamp => stacklab_protocols::stamp::PORT,
        })
    }

    fn request(&self, probe: Probe, transport: Transport, tcp: Option<&TcpTuning>) -> MeasureRequest {
        /// Measured where nothing is said, nanoseconds.
        const TIME_NS: u64 = 10_000_000_000;
        let length = match (self.packets, self.time) {
            (Some(packets), _) => Length::Packets(packets),
            (None, time) => Length::Time(time.unwrap_or(TIME_NS)),
        };
        let tuning = Tuning {
            send_buffer: self.buffer,
            receive_buffer: self.buffer,
            dscp: self.dscp,
            mss: tcp.and_then(|tcp| tcp.mss),
            nodelay: tcp.and_then(|tcp| tcp.nodelay),
            congestion_control: tcp.and_then(|tcp| tcp.congestion.clone()),
            ..Tuning::default()
        };
        MeasureRequest {
            probe,
            transport,
            pace: Pace::As(Pacing::Flood),
            size: None,
            size_of: SizeOf::Write,
            io: None,
            flows: 1,
            direction: if self.reverse { Direction::Reverse } else { Direction::Forward },
            length,
            warmup_ns: self.warmup,
            interval_ns: 0,
            poll_ns: 0,
            at_interface: false,
            delays: transport == Transport::Udp,
            searched_loss_ppm: None,
            tuning,
        }
    }
}

impl StreamOptions {
    fn request(&self, request: MeasureRequest) -> MeasureRequest {
        let pace = match (self.pps, self.rate) {
            (Some(pps), _) => Pace::As(Pacing::Schedule(pps)),
            (None, Some(rate)) if rate > 0.0 => Pace::Bits(rate),
            _ => Pace::As(Pacing::Flood),
        };
        MeasureRequest {
            pace,
            size: self.message.size,
            size_of: self.message.size_of,
            flows: self.flows,
            direction: if self.bidir { Direction::Both } else { request.direction },
            io: self.io,
            interval_ns: self.interval,
            ..request
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    Agent,
    Iperf3,
    Stamp,
}

/// Options of an echo with a STAMP reflector. Packets leave on a schedule: 100 a second, or --pps. --key-file has the
/// key of authenticated packets, as hexadecimal digits; -S asks for answers with the same code point.
#[derive(Debug, Clone, Args)]
pub(crate) struct StampOptions {
    /// Session identifier, 1 to 65535; default: random
    #[arg(long, value_name = "NUMBER", requires = "peer", value_parser = clap::value_parser!(u16).range(1..))]
    pub stamp_session: Option<u16>,
    /// Request the timestamp information TLV: the reflector's synchronisation and timestamping
    #[arg(long, requires = "peer")]
    pub stamp_times: bool,
    /// Format of timestamps, sent and requested: ntp (seconds since 1900 and a binary fraction) or ptp (seconds since
    /// 1970 and nanoseconds: the truncated format of PTPv2, as UTC)
    #[arg(long, value_name = "FORMAT", requires = "peer", default_value = "ntp")]
    pub stamp_format: TimeFormat,
    /// Maximum difference of both hosts' clocks: 0 on one machine, 1us with PTP. Default: from both hosts'
    /// synchronisation, or else an offset estimated from the delays
    #[arg(long, value_name = "TIME", requires = "peer", value_parser = time)]
    pub clock_error: Option<u64>,
}

//! The options of `stacklab measure`.

mod peer;

use crate::cli::quantities::{bytes, dscp, io, per_second, rate, some_time, time};
use clap::{ArgAction, Args, Subcommand};
use peer::PeerOptions;
pub(crate) use peer::{Peer, StampRequest};
use stacklab_agent::tls::Fingerprint;
use stacklab_model::{Family, Framing, Io, Length, Pacing, Probe, ScopedAddr, Transport, Tuning};
use stacklab_traffic::host::zone::written_here;
use std::path::PathBuf;

/// What is measured.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum MeasureOptions {
    /// Throughput, retransmits and CPU time of a TCP stream
    #[command(after_help = "\
Examples:
  stacklab measure tcp server.example
  stacklab measure tcp server.example -6 -t 30 -R
  stacklab measure tcp 192.0.2.7 -l 1400 -N -C bbr --json > run.json")]
    Tcp(TcpOptions),
    /// Throughput, message rate, loss, jitter and delay of a UDP stream: a flood, or at a rate (-b, --pps)
    #[command(after_help = "\
Examples:
  stacklab measure udp server.example              a flood (iperf3 would send 1 Mbit/s)
  stacklab measure udp server.example -b 100M
  stacklab measure udp server.example --against ipv4    IPv6 compared with IPv4
  stacklab measure udp 2001:db8::7 --pps 10000 -l 64")]
    Udp(UdpOptions),
    /// Round trips of a message out and back, one after another or on a schedule (--pps)
    #[command(after_help = "\
Examples:
  stacklab measure echo server.example
  stacklab measure echo server.example --tcp -l 1K -n 10000
  stacklab measure echo server.example --pps 1000    on a schedule, from the intended send time
  stacklab measure echo router.example --peer stamp  any STAMP or TWAMP-Light reflector: delays and losses by direction")]
    Echo(EchoOptions),
    /// Time to open a TCP connection, one after another
    #[command(after_help = "Example:\n  stacklab measure connect server.example -n 1000")]
    Connect(ConnectOptions),
}

/// Options of `measure tcp`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TcpOptions {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    message: MessageOptions,
    #[command(flatten)]
    stream: StreamOptions,
    /// Also measure one-way delays; each message is then received when it arrives, which costs
    /// throughput
    #[arg(long)]
    delays: bool,
    #[command(flatten)]
    tcp: TcpTuning,
}

/// Options of `measure udp`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UdpOptions {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    message: MessageOptions,
    #[command(flatten)]
    stream: StreamOptions,
}

/// Options of `measure echo`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EchoOptions {
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
    peer: PeerOptions,
    #[command(flatten)]
    tuning: TcpTuning,
}

/// Options of `measure connect`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectOptions {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    tuning: TcpTuning,
}

/// Options of every measurement.
#[derive(Debug, Clone, Args)]
pub(crate) struct CommonOptions {
    /// Name or address of the host that runs `stacklab agent --listen`, or its addresses separated by commas; a
    /// link-local address needs this host's interface to it: fe80::1%eth0
    pub host: String,
    /// Compare the other family with this one, interleaved, until there is a verdict or -t has passed
    #[arg(long, value_name = "FAMILY", value_parser = family, conflicts_with_all = ["ipv4", "ipv6", "from"])]
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
    /// Source address; default: the kernel chooses
    #[arg(long, value_name = "ADDRESS", value_parser = written_here)]
    pub from: Option<ScopedAddr>,
    /// Seconds to measure, or a time such as 500ms; default 10 unless -n is given
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

/// Options of messages.
#[derive(Debug, Clone, Args)]
struct MessageOptions {
    /// Bytes per message, at least 32; K and M are powers of 1024 [default: tcp 128K, udp 1400, echo 64]
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = bytes)]
    size: Option<u32>,
    /// What a message is: `message`, what one call writes; `segment`, one packet per message, validated; other traffic
    /// or offloads make the run invalid
    #[arg(long, value_name = "FRAMING", default_value = "message", value_parser = framing)]
    framing: Framing,
}

fn family(text: &str) -> Result<Family, String> {
    text.parse().map_err(|_| "expected ipv4 or ipv6".to_owned())
}

fn framing(text: &str) -> Result<Framing, String> {
    match text.parse() {
        Ok(Framing::Frame) | Err(_) => Err("expected message or segment".to_owned()),
        Ok(framing) => Ok(framing),
    }
}

/// Options of streams.
#[derive(Debug, Clone, Args)]
struct StreamOptions {
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
    /// System calls: auto, plain (one message per call), batch (several per call), segment (GSO
    /// batches, UDP), zerocopy (TCP)
    #[arg(long, value_name = "IO", default_value = "auto", value_parser = io)]
    io: Choice,
    /// Seconds between two rows of the output; 0 for none
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = time)]
    interval: u64,
}

/// An I/O path, or `None` to leave it to the program. (An alias, since clap takes an `Option` for one that may be left
/// out.)
type Choice = std::option::Option<Io>;

/// Options of TCP sockets.
#[derive(Debug, Clone, Args)]
struct TcpTuning {
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

/// What options ask for, alike for every kind of measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MeasureRequest {
    /// Which probe.
    pub probe: Probe,
    /// Over which transport.
    pub transport: Transport,
    /// When messages leave.
    pub pace: Pace,
    /// Bytes per message; `None` where the user leaves it to the program.
    pub size: Option<u32>,
    /// What a message is.
    pub framing: Framing,
    /// How messages get into the kernel; `None` where the user leaves it to the program.
    pub io: Option<Io>,
    /// Flows at once.
    pub flows: u32,
    /// Both directions at the same time.
    pub both: bool,
    /// When the measured part ends.
    pub length: Length,
    /// Nanoseconds of warm-up.
    pub warmup_ns: u64,
    /// Nanoseconds of a row; 0 for no rows.
    pub interval_ns: u64,
    /// Nanoseconds of polling.
    pub poll_ns: u64,
    /// Whether the round trip is taken at the interface too.
    pub at_interface: bool,
    /// Whether a stream's one-way delays are asked for.
    pub delays: bool,
    /// Socket options.
    pub tuning: Tuning,
}

/// When messages leave, as the user says it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// Said in full.
    As(Pacing),
    /// Bits of payload per second.
    Bits(f64),
}

impl MeasureOptions {
    /// The options that all have.
    pub(crate) fn common(&self) -> &CommonOptions {
        match self {
            MeasureOptions::Tcp(options) => &options.common,
            MeasureOptions::Udp(options) => &options.common,
            MeasureOptions::Echo(options) => &options.common,
            MeasureOptions::Connect(options) => &options.common,
        }
    }

    /// What a STAMP reflector is asked; `None` for another measurement than an echo.
    pub(crate) fn stamp(&self) -> Option<StampRequest> {
        let MeasureOptions::Echo(EchoOptions { peer, pps, .. }) = self else { return None };
        Some(peer.stamp(*pps))
    }

    /// What they ask for.
    pub(crate) fn request(&self) -> MeasureRequest {
        match self {
            MeasureOptions::Tcp(TcpOptions { common, message, stream, delays, tcp }) => {
                let request =
                    stream.request(message.request(common.request(Probe::Stream, Transport::Tcp, Some(tcp))));
                MeasureRequest { delays: *delays, ..request }
            }
            MeasureOptions::Udp(UdpOptions { common, message, stream }) => {
                stream.request(message.request(common.request(Probe::Stream, Transport::Udp, None)))
            }
            MeasureOptions::Echo(EchoOptions {
                common,
                message,
                tcp,
                pps,
                interval,
                poll,
                at_interface,
                tuning,
                ..
            }) => {
                let (probe, pacing) = match pps {
                    Some(pps) => (Probe::EchoOpenLoop, Pacing::Schedule(*pps)),
                    None => (Probe::Echo, Pacing::Lockstep),
                };
                let transport = if *tcp { Transport::Tcp } else { Transport::Udp };
                MeasureRequest {
                    pace: Pace::As(pacing),
                    interval_ns: *interval,
                    poll_ns: u64::from(*poll) * 1000,
                    at_interface: *at_interface,
                    ..message.request(common.request(probe, transport, Some(tuning)))
                }
            }
            MeasureOptions::Connect(ConnectOptions { common, tuning }) => {
                common.request(Probe::Connect, Transport::Tcp, Some(tuning))
            }
        }
    }
}

impl CommonOptions {
    /// The port on which the peer listens.
    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(self.peer.port())
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
            framing: Framing::Message,
            io: None,
            flows: 1,
            both: false,
            length,
            warmup_ns: self.warmup,
            interval_ns: 0,
            poll_ns: 0,
            at_interface: false,
            delays: transport == Transport::Udp,
            tuning,
        }
    }
}

impl MessageOptions {
    fn request(&self, request: MeasureRequest) -> MeasureRequest {
        MeasureRequest { size: self.size, framing: self.framing, ..request }
    }
}

impl StreamOptions {
    fn request(&self, request: MeasureRequest) -> MeasureRequest {
        let pace = match (self.pps, self.rate) {
            (Some(pps), _) => Pace::As(Pacing::Schedule(pps)),
            (None, Some(rate)) if rate > 0.0 => Pace::Bits(rate),
            _ => Pace::As(Pacing::Flood),
        };
        let StreamOptions { flows, bidir, io, interval, .. } = *self;
        MeasureRequest { pace, flows, both: bidir, io, interval_ns: interval, ..request }
    }
}

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
    /// Throughput, message rate, loss, jitter and delay of a UDP stream, as fast as it goes or at a rate (-b, --pps)
    #[command(after_help = "\
Examples:
  stacklab measure udp server.example              as fast as it goes (iperf3 would send 1 Mbit/s)
  stacklab measure udp server.example -b 100M
  stacklab measure udp server.example --against ipv4    what IPv6 costs or gains
  stacklab measure udp 2001:db8::7 --pps 10000 -l 64")]
    Udp(UdpOptions),
    /// Round trips of a message out and back, one after another or on a schedule (--pps)
    #[command(after_help = "\
Examples:
  stacklab measure echo server.example
  stacklab measure echo server.example --tcp -l 1K -n 10000
  stacklab measure echo server.example --pps 1000    from the intended send time, whatever came back
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
    /// Also how long messages take from one host to the other; each is then received as it comes, which costs
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
    /// Microseconds that both ends poll before they sleep: excludes CPU wake-up from the round trip
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    poll: u32,
    /// Also the round trip between the kernel's transmit and receive timestamps; costs one more system call per message
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
    /// Name or address of the host where `stacklab agent --listen` runs, or addresses of it separated by commas; a
    /// link-local address with the interface of this host that leads there, as in fe80::1%eth0
    pub host: String,
    /// Compare the other family with this one: both in turns of milliseconds, until there is a verdict or -t has passed
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
    /// Port on which the agent listens (the traffic itself goes to ports that the kernels choose), or the peer's
    /// [default: 5202; iperf3: 5201]
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// What runs on HOST: `agent` of stacklab's; a server of `iperf3` (tcp and udp only), whose figures are its word;
    /// or a `stamp` session-reflector (echo only)
    #[arg(long, value_name = "PEER", default_value = "agent")]
    pub peer: Peer,
    /// Take the agent's key from this file. Without it the key is STACKLAB_KEY of the environment, or is asked for on a
    /// terminal
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Speak with the agent inside TLS 1.3, and only with the one of this fingerprint, which `stacklab agent --listen
    /// --tls` prints
    #[arg(long, value_name = "FINGERPRINT")]
    pub tls: Option<Fingerprint>,
    /// Own address to measure from; without it, the one that the kernel chooses
    #[arg(long, value_name = "ADDRESS", value_parser = written_here)]
    pub from: Option<ScopedAddr>,
    /// Seconds to measure, or a time such as 500ms; default 10 unless -n is given
    #[arg(short, long, value_name = "SECONDS", conflicts_with = "packets", value_parser = some_time)]
    time: Option<u64>,
    /// Messages (or connections) to measure, instead of a time
    #[arg(short = 'n', visible_short_alias = 'k', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Seconds of the same traffic before the measured part, left out of all figures
    #[arg(short = 'O', long, value_name = "SECONDS", default_value = "0", value_parser = time)]
    warmup: u64,
    /// From HOST to here: its agent sends (or asks), and opens the connection
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Bytes of socket buffers, in both directions (the kernel doubles them); K and M count in 1024
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes)]
    buffer: Option<u32>,
    /// Differentiated services code point, 0 to 63 or a name such as ef or af41
    #[arg(short = 'S', long, value_name = "POINT", value_parser = dscp)]
    dscp: Option<u8>,
    /// Print the run and nothing else on standard output, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of messages.
#[derive(Debug, Clone, Args)]
struct MessageOptions {
    /// Bytes of a message, at least 32; K and M count in 1024 [default: tcp 128K, udp 1400, echo 64]
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
    /// Flows at once, each with a socket of its own
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    flows: u32,
    /// Both directions at once
    #[arg(long, conflicts_with = "reverse")]
    bidir: bool,
    /// Bits of payload per second, of all flows together; k, M and G count in 1000; 0 or absent: unlimited
    #[arg(short = 'b', long, value_name = "RATE", conflicts_with = "pps", value_parser = rate)]
    rate: Option<f64>,
    /// Messages per second, of all flows together, instead of -b
    #[arg(long, value_name = "N", value_parser = per_second)]
    pps: Option<f64>,
    /// How messages get into the kernel: auto, send (a call each), sendmmsg (several a call), gso (GSO
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
    /// Send every TCP message at once (TCP_NODELAY), or none (--nodelay=false); default: off for floods
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
    /// Both directions at once.
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
    /// What sockets are told.
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

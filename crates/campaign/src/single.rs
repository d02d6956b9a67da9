//! A single measurement (`stacklab measure`): its request, and the trial and specification of it.

use crate::CampaignError;
use stacklab_model::{
    Cell, CellSettings, CpuScope, Direction, Family, HEADER_BYTES, Io, IoChoice, Length, Metric, Pacing,
    Probe, ProbeSpec, SizeOf, Transport, Trial, TrialSpec, Tuning,
};

/// Row length if no rows are printed, nanoseconds: the JSON contains rows in any case.
const ROW_NS: u64 = 1_000_000_000;
/// The slowest schedule, messages per second.
const SLOWEST: f64 = 0.001;
/// Maximum TCP message size, bytes: an agent allocates two messages.
const LONGEST_TCP: u32 = 16 << 20;
/// Bytes of a message that fits a packet of any usual path, except one with the minimum MTU of IPv6.
const PACKET_SIZE: u32 = 1400;

/// What is measured, in the same form for every kind of measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureRequest {
    /// What a message is for.
    pub probe: Probe,
    /// UDP or TCP.
    pub transport: Transport,
    /// When messages leave.
    pub pace: Pace,
    /// Bytes per message; the program chooses without.
    pub size: Option<u32>,
    /// What `size` counts.
    pub size_of: SizeOf,
    /// The program chooses without.
    pub io: Option<Io>,
    /// Sockets that send at the same time.
    pub flows: u32,
    /// Whether both hosts send.
    pub both: bool,
    /// How long, in time or messages.
    pub length: Length,
    /// Sent before that, and not counted.
    pub warmup_ns: u64,
    /// Length of a row; 0 for no rows.
    pub interval_ns: u64,
    /// Time for which a receiver polls before it sleeps.
    pub poll_ns: u64,
    /// Whether round trips are stamped at the interface too.
    pub at_interface: bool,
    /// Whether one-way delays of a flood are measured.
    pub delays: bool,
    /// Socket options.
    pub tuning: Tuning,
}

/// When messages leave, before their size is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// At this pace.
    As(Pacing),
    /// Bits of payload per second.
    Bits(f64),
}

impl Pace {
    /// Of messages of this many bytes.
    pub fn of(self, size: u32) -> Pacing {
        match self {
            Pace::As(pacing) => pacing,
            Pace::Bits(rate) => Pacing::Schedule(rate / 8.0 / f64::from(size)),
        }
    }
}

/// Checks a request for errors that do not depend on the hosts.
pub fn check(request: &MeasureRequest) -> Result<(), CampaignError> {
    let refuse = |text: String| Err(CampaignError::Usage(text));
    if let Some(size) = request.size {
        if size < HEADER_BYTES {
            return refuse(format!(
                "a message of {size} bytes is smaller than the probe's header: use -l {HEADER_BYTES} or more"
            ));
        }
        if request.transport == Transport::Tcp && size > LONGEST_TCP {
            return refuse(format!(
                "a message of {size} bytes is too long: -l {}M is the most",
                LONGEST_TCP >> 20
            ));
        }
    }
    match (request.io, request.transport) {
        (Some(Io::Gso), Transport::Tcp) => {
            return refuse(
                "--io gso makes GSO batches of datagrams: with tcp, choose sendmmsg, send or zerocopy"
                    .to_owned(),
            );
        }
        (Some(Io::Zerocopy), Transport::Udp) => {
            return refuse("--io zerocopy is for tcp: with udp, choose gso, sendmmsg or send".to_owned());
        }
        _ => {}
    }
    let Tuning { mss, nodelay, congestion_control, .. } = &request.tuning;
    if request.transport == Transport::Udp
        && (mss.is_some() || nodelay.is_some() || congestion_control.is_some())
    {
        return refuse("-C, -M and -N are options of TCP sockets: add --tcp".to_owned());
    }
    Ok(())
}

/// The trial of a request in a family, and its specification. `shared` is whether both hosts are one machine; `token`
/// is a number that other measurements do not have.
pub fn plan(
    request: &MeasureRequest,
    family: Family,
    direction: Direction,
    shared: bool,
    token: u32,
) -> Result<(Trial, TrialSpec), CampaignError> {
    let MeasureRequest { probe, transport, size_of, flows, .. } = *request;
    let size = request.size.unwrap_or(default_size(probe, transport, size_of));
    let most = family.largest_packet_bytes() - family.header_bytes() - transport.header_bytes();
    if transport == Transport::Udp && size > most {
        return Err(CampaignError::Usage(format!(
            "a datagram of {size} bytes is too long over {family}: -l {most} is the most"
        )));
    }
    let pacing = request.pace.of(size);
    if let Pacing::Schedule(per_second) = pacing
        && per_second < SLOWEST
    {
        return Err(CampaignError::Usage(format!(
            "at this rate a message of {size} bytes leaves every {:.0} s: choose shorter messages (-l) or a higher rate (-b)",
            1.0 / per_second
        )));
    }
    let asked = |metric: &Metric| match metric {
        Metric::RttInterface | Metric::RttInterfaceP99 => request.at_interface,
        // The sampler would compete with a sender that spins to keep a schedule.
        Metric::MemorySockets => false,
        metric if metric.is_generator_error() => false,
        // On a schedule, one-way delays cost nothing.
        metric if metric.is_one_way_delay() => request.delays || pacing != Pacing::Flood,
        _ => true,
    };
    let metrics = Metric::ALL.iter().copied().filter(asked);
    let probe_spec = ProbeSpec {
        probe,
        pacing,
        length: request.length,
        warmup_ns: request.warmup_ns,
        interval_ns: if request.interval_ns > 0 { request.interval_ns } else { ROW_NS },
        metrics: metrics.filter(|metric| metric.probe() == probe && metric.applies_to(transport)).collect(),
    };
    let mut cell = Cell::new(family, transport, size_of, size);
    let mut spec = TrialSpec::new(token, &cell, probe_spec);
    spec.cpu_scope = if shared { CpuScope::Shared } else { CpuScope::Host };
    spec.poll_ns = request.poll_ns;
    spec.io = request.io.unwrap_or(best_io(probe, pacing, transport));
    spec.flows = flows;
    spec.tuning = request.tuning.clone();
    cell.settings = settings(&spec, direction);
    Ok((Trial { block: 0, position: 0, cell, probe }, spec))
}

/// Bytes of a message if the user names none.
pub fn default_size(probe: Probe, transport: Transport, size_of: SizeOf) -> u32 {
    match (probe, transport, size_of) {
        (Probe::Stream, Transport::Tcp, SizeOf::Write) => 128 << 10,
        (Probe::Stream, ..) => PACKET_SIZE,
        _ => 64,
    }
}

/// The fastest I/O mode for a flood; scheduled and closed-loop messages are sent one per call.
pub fn best_io(probe: Probe, pacing: Pacing, transport: Transport) -> Io {
    match (probe, pacing, transport) {
        (Probe::Stream, Pacing::Flood, Transport::Udp) => Io::Gso,
        (Probe::Stream, Pacing::Flood, Transport::Tcp) => Io::Sendmmsg,
        _ => Io::Send,
    }
}

/// The settings that a study would contain for values that differ from the default.
fn settings(spec: &TrialSpec, direction: Direction) -> CellSettings {
    CellSettings {
        io: (spec.probe.probe == Probe::Stream).then_some(IoChoice::Path(spec.io)),
        flows: (spec.flows > 1).then_some(spec.flows),
        direction: (direction != Direction::Forward).then_some(direction),
        tuning: spec.tuning.clone(),
        ..CellSettings::default()
    }
}

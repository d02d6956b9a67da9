//! What `stacklab measure` asks for, and the study of it.

use crate::CampaignError;
use crate::trial::spec::{Goal, choose_io};
use stacklab_model::{
    ArmSchedule, Cell, CellSettings, Direction, Family, Io, IoChoice, Length, LinkConfig, Metric, Pacing,
    Probe, ProbeSpec, SizeOf, StoppingRule, Topology, Transport, Trial, TrialSpec, Tuning, Until,
};
use stacklab_study::Study;

/// Row length if no rows are printed, nanoseconds: the JSON contains rows in any case.
const ROW_NS: u64 = 1_000_000_000;
/// The MTU that a path is described with before it is known.
const ETHERNET_MTU: u32 = 1500;
/// The slowest schedule, messages per second.
const SLOWEST: f64 = 0.001;
/// Maximum TCP message size, bytes: an agent allocates two messages.
const MAX_TCP_LENGTH: u32 = 16 << 20;
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
    /// Which host sends.
    pub direction: Direction,
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
    /// The share of lost or late messages, in millionths, up to which the highest load is searched; `None`: no search.
    pub searched_loss_ppm: Option<u32>,
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
    let is_tcp = request.transport == Transport::Tcp;
    let least = TrialSpec::min_message_bytes(request.probe, request.transport);
    let size = request.size.unwrap_or(least);
    let Tuning { mss, nodelay, congestion_control, .. } = &request.tuning;
    let is_tuned = mss.is_some() || nodelay.is_some() || congestion_control.is_some();
    let megabytes = MAX_TCP_LENGTH >> 20;
    let refused = [
        (
            size < least,
            format!("a message of {size} bytes is smaller than the probe's header: use -l {least} or more"),
        ),
        (
            is_tcp && size > MAX_TCP_LENGTH,
            format!("a message of {size} bytes is too long: -l {megabytes}M is the most"),
        ),
        (
            is_tcp && request.io == Some(Io::Gso),
            "--io gso makes GSO batches of datagrams: with tcp, choose sendmmsg, send or zerocopy".to_owned(),
        ),
        (
            !is_tcp && request.io == Some(Io::Zerocopy),
            "--io zerocopy is for tcp: with udp, choose gso, sendmmsg or send".to_owned(),
        ),
        (!is_tcp && is_tuned, "-C, -M and -N are options of TCP sockets: add --tcp".to_owned()),
    ];
    let first = refused.into_iter().find(|(is_refused, _)| *is_refused);
    first.map_or(Ok(()), |(_, why)| Err(CampaignError::Usage(why)))
}

/// Bytes of a request's messages; an error if a datagram of the family cannot hold them.
pub fn check_size(request: &MeasureRequest, family: Family) -> Result<u32, CampaignError> {
    let MeasureRequest { probe, transport, size_of, .. } = *request;
    let size = request.size.unwrap_or(default_size(probe, transport, size_of));
    let most = family.largest_packet_bytes() - family.header_bytes() - transport.header_bytes();
    if transport == Transport::Udp && size > most {
        return Err(CampaignError::Usage(format!(
            "a datagram of {size} bytes is too long over {family}: -l {most} is the most"
        )));
    }
    Ok(size)
}

/// The study of a request over a family: one cell, measured once.
pub fn study_of_one(request: &MeasureRequest, title: String, family: Family) -> Result<Study, CampaignError> {
    let MeasureRequest { probe, transport, size_of, .. } = *request;
    let size = check_size(request, family)?;
    let pacing = request.pace.of(size);
    if let Pacing::Schedule(per_second) = pacing
        && per_second < SLOWEST
    {
        return Err(CampaignError::Usage(format!(
            "at this rate a message of {size} bytes leaves every {:.0} s: choose shorter messages (-l) or a higher rate (-b)",
            1.0 / per_second
        )));
    }
    let probe_spec = ProbeSpec {
        probe,
        pacing,
        length: request.length,
        warmup_ns: request.warmup_ns,
        interval_ns: if request.interval_ns > 0 { request.interval_ns } else { ROW_NS },
        metrics: list_metrics(request, pacing),
    };
    let mut cell = Cell::new(family, transport, size_of, size);
    cell.settings = settings(request, pacing).into();
    Ok(Study {
        title,
        link_config: LinkConfig { rate: None, mtu: ETHERNET_MTU, offloads: true },
        topology: Topology::Link,
        hosts: Vec::new(),
        keeps_testbeds: true,
        programs: Vec::new(),
        cells: vec![cell],
        probes: vec![probe_spec],
        schedule: ArmSchedule::Alone,
        rule: StoppingRule { min: 1, max: 1, until: Until::Verdict, target: 0.0, budget_ns: None },
        comparisons: Vec::new(),
    })
}

/// The trial of a study of one cell.
pub fn trial_of(study: &Study) -> Trial {
    Trial { block: 0, position: 0, cell: study.cells[0].clone(), probe: study.probes[0].probe }
}

/// All figures of the probe but those that cost something and were not asked for.
fn list_metrics(request: &MeasureRequest, pacing: Pacing) -> Vec<Metric> {
    let mut metrics = Metric::ALL.to_vec();
    metrics.retain(|metric| {
        metric.probe() == request.probe
            && metric.applies_to(request.transport)
            && wants_metric(request, pacing, *metric)
    });
    metrics
}

fn wants_metric(request: &MeasureRequest, pacing: Pacing, metric: Metric) -> bool {
    match metric {
        Metric::RttInterface | Metric::RttInterfaceP99 => request.at_interface,
        // The sampler would compete with a sender that spins to keep a schedule.
        Metric::MemorySockets => false,
        metric if metric.table().is_some() => false,
        // An agent is not a STAMP reflector.
        Metric::PathRoundTrip => false,
        metric if metric.is_generator_error() => false,
        // On a schedule, one-way delays cost nothing.
        metric if metric.is_one_way_delay() => request.delays || pacing != Pacing::Flood,
        _ => true,
    }
}

/// Bytes of a message if the user names none.
pub fn default_size(probe: Probe, transport: Transport, size_of: SizeOf) -> u32 {
    match (probe, transport, size_of) {
        (Probe::Stream, Transport::Tcp, SizeOf::Write) => 128 << 10,
        (Probe::Stream, ..) => PACKET_SIZE,
        _ => 64,
    }
}

/// The settings of a cell, those that differ from the default and how messages enter the kernel.
fn settings(request: &MeasureRequest, pacing: Pacing) -> CellSettings {
    let mut settings = CellSettings { tuning: request.tuning.clone(), ..CellSettings::default() };
    if request.probe == Probe::Stream {
        let io = request.io.unwrap_or(choose_io(Goal::FillPath, request.probe, pacing, request.transport));
        settings.io = Some(IoChoice::Path(io));
    }
    if request.flows > 1 {
        settings.flows = Some(request.flows);
    }
    if request.direction != Direction::Forward {
        settings.direction = Some(request.direction);
    }
    settings
}

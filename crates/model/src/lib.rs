//! The vocabulary of stacklab: factors, trials, host reports, metrics and findings; the models of headers and airtime.
//!
//! It contains data, parsing and printing only: no I/O and no clock. It is the only crate of the project that other
//! library crates depend on; the `stacklab` program combines them.

mod explanation;
mod factors;
mod findings;
mod host;
mod metrics;
mod names;
mod network;
mod numbers;
mod printable;
mod random;
mod renamed;
mod trial;
mod units;
mod value;
pub mod wifi;

pub use explanation::exact::{ExactArm, ExactCell, ExactCounts, ExactPath, ExactProbe, ExactRow};
pub use explanation::pair::{Explanation, Why};
pub use explanation::profile::{Profile, Sample, SampleEvent, StageKind, StageName, Window};
pub use explanation::stage_costs::{Health, StackCost, StageCost, StageCosts};
pub use factors::cell::Cell;
pub use factors::factor::Factor;
pub use factors::family::{Family, Probe, SizeOf, Transport};
pub use factors::generator::{Generator, GeneratorDef};
pub use factors::mechanism::{
    Device, Header, Mechanism, MechanismDef, Method, Remote, Setup, Translation, Translator, Tunnel,
};
pub use factors::services::{NoServices, SERVICES, Service, Services};
pub use factors::settings::{AsWritten, CellSettings, UnknownLevel};
pub use factors::system::{SYSTEMS, System, Systems, UnknownSystem};
pub use findings::blocks::{ArmFigure, BlockFigures, BlockSummary};
pub use findings::campaign::Findings;
pub use findings::difference::Difference;
pub use findings::finding::{
    CellEstimate, Comparison, ComparisonSpec, Effect, Estimate, Explained, Interval, LimitedBy, Question,
    StopReason, Tests, Verdict,
};
pub use findings::fleet::{FleetComparison, FleetFindings, FleetPair, PairAnswer, PooledEffect};
pub use findings::overall::Headline;
pub use findings::records::{Apart, Change, MetricDiff, OnlyInOne, RecordDiff, Recorded, Unpaired};
pub use findings::same_arm::{ArmOrder, SELF_ARMS, SameArm};
pub use host::counters::{Counters, CpuTime, Drops, TcpInfo};
pub use host::delay_points::{ClockSource, Compared, DelayPoints, Point};
pub use host::ends::Ends;
pub use host::facts::{CpuScope, CpuSource, HostFacts};
pub use host::noise::{EchoFloor, NoiseFloor, Spread};
pub use host::report::{Delays, Endpoint, Exchange, HostReport, IntervalRow, Offloads, Received, Role, Sent};
pub use host::slice::Slice;
pub use host::station::{Station, StationFrame, StationReport};
pub use host::tool::{ToolReport, ToolSeries};
pub use metrics::histogram::Buckets;
pub use metrics::metric::Metric;
pub use metrics::unit::{Better, Scale, Unit};
pub use names::{UnknownName, by_distance, nearest, once_each};
pub use network::address::ScopedAddr;
pub use network::headers::{ETHERNET_HEADER_BYTES, WirePath, WireSize, payload_of_frame, wire_size};
pub use network::link_bucket::LinkBucket;
pub use network::link_config::LinkConfig;
pub use network::topology::{Links, OwnLink, RoutedKind, Topology};
pub use network::wire_cost::WireCost;
pub use numbers::{LARGEST_NUMBER, too_large};
pub use printable::{printable_lines, printable_text};
pub use random::SplitMix64;
pub use renamed::{RENAMED_FLAGS, RENAMED_KEYS, renamed_key, renamed_names};
pub use trial::Trial;
pub use trial::io::{Io, IoChoice};
pub use trial::run::{RunRecord, RunStatus, Warning};
pub use trial::spec::{ArmSchedule, HEADER_BYTES, Length, Pacing, ProbeSpec, StoppingRule, TrialSpec, Until};
pub use trial::tuning::{Direction, Pinning, SocketOptions, Tuning};
pub use units::{Nanoseconds, Rate, UnitError, parse_duration, parse_ratio, print_duration};
pub use value::Value;

//! The vocabulary of stacklab: factors, trials, host reports, metrics and findings; the models of headers and airtime.
//!
//! It contains data, parsing and printing only: no I/O and no clock.
#![expect(missing_docs, reason = "what its name and its type say has no comment")]

mod claims;
mod explanation;
mod factors;
mod findings;
mod host;
mod limits;
mod metrics;
mod names;
mod network;
mod random;
mod record_load;
mod say;
mod shared;
mod shell;
mod text;
mod trial;
mod units;
pub mod wifi;
mod words;

pub use claims::{MIN_FLEET_PAIRS, MIN_PAIRS, MIN_PAIRS_OF_MEAN, MIN_UNPAIRED_RUNS};
pub use explanation::exact::{ExactArm, ExactCell, ExactCounts, ExactPath, ExactProbe, ExactRow};
pub use explanation::exact_pair::{ExactPair, MAX_ENTRIES, Uncounted, count_entries};
pub use explanation::program_counts::{EndCounts, FunctionCount, ProgramCell, ProgramCounts, ProgramEnd};
pub use explanation::{Explanation, Health, SampleEvent, StackCost, StageCost, StageCosts, Why};
pub use factors::Factor;
pub use factors::cell::Cell;
pub use factors::family::{Family, Probe, SizeOf, Transport};
pub use factors::mechanism::{
    Device, Header, Mechanism, MechanismDef, Method, Nat, PortSet, Publisher, Remote, Setup, Sharing,
    Translation, Translator, Tunnel,
};
pub use factors::programs::{Generator, GeneratorDef, NoServices, SERVICES, Service, Services};
pub use factors::router_queue::RouterQueue;
pub use factors::rules::{MAX_RULES, RuleForm, Rules};
pub use factors::settings::{AsWritten, CellSettings};
pub use factors::system::{SMOLTCP, SYSTEMS, System, Systems};
pub use factors::tables::{
    EntryMemory, FlowOffload, MAX_CONNECTIONS, MAX_NEIGHBOURS, MAX_ROUTES, Table, Tables, Tracking,
    count_destinations,
};
pub use findings::fleet::{
    ArmFigure, BlockFigures, BlockSummary, FleetComparison, FleetFindings, FleetPair, PairAnswer,
    PooledEffect,
};
pub use findings::frame_loss::{FrameLoss, FrameLossArm, FrameLossPoint};
pub use findings::loss_by_load::{LossByLoad, LossPoint};
pub use findings::records::{
    Apart, Change, Lacking, MetricDiff, OnlyInOne, RecordDiff, RecordFacts, Unpaired,
};
pub use findings::rfc8219::{Rfc8219, RunPercentiles};
pub use findings::{
    APPEARS, ArmOrder, CellEstimate, Comparison, ComparisonSpec, Control, Effect, Estimate, Explained,
    Findings, Headline, Interval, LimitedBy, Question, SELF_ARMS, SameArm, StopReason, Tests, UnpairedRange,
    Verdict,
};
pub use host::counters::{Counters, CpuTime, Drops, Slice, TcpInfo};
pub use host::delays::{Buckets, ClockSource, Compared, DelayPoints, Ipdv, Point};
pub use host::kernel_memory::{
    HeldSockets, KernelMemory, MAX_PAIRS, Weighed, available_memory, count_first_third,
    kernel_memory_at_rest, read_kernel_memory,
};
pub use host::report::{
    Delays, Endpoint, Exchange, HostReport, IntervalRow, Offloads, Received, Role, Sent, Station,
    StationFrame, StationReport, ToolReport, ToolSeries,
};
pub use host::{CpuQuota, CpuScope, CpuSource, EchoFloor, Ends, HostFacts, NoiseFloor, Spread};
pub use limits::{
    MAX_NUMBER, POSSIBLE_RATES, add_up, is_control, is_in_bounds, printable_lines, printable_text, too_large,
};
pub use metrics::Metric;
pub use metrics::unit::{Better, Difference, Scale, Unit};
pub use names::{
    RENAMED_FLAGS, RENAMED_KEYS, UnknownName, by_distance, nearest, once_each, renamed_key, renamed_names,
};
pub use network::address::{ScopedAddr, network_of};
pub use network::customers::{Customer, CustomerPorts, MAX_CLIENTS, Uplink, count_customers};
pub use network::headers::{ETHERNET_HEADER_BYTES, WirePath, WireSize, payload_of_frame, wire_size};
pub use network::prefixes::{Prefix, list_destinations, list_prefixes};
pub use network::wire_cost::{LinkBucket, WireCost};
pub use network::{LinkConfig, Links, OwnLink, RoutedKind, Topology};
pub use random::SplitMix64;
pub use record_load::{OtherLoad, RecordLoads, read_other_load};
pub use shared::Shared;
pub use shell::quote_file;
pub use text::{NotText, decode_text, read_text};
pub use trial::connections::{CONNECTION_METRICS, ConnectionState, PortGrid, SliceConnections};
pub use trial::options::{Direction, Io, IoChoice, Pinning, SocketKind, SocketOptions, Tuning};
pub use trial::program::{PROGRAM_PLACEHOLDERS, ProgramArguments, ProgramSpec, misspelt_placeholder};
pub use trial::search::{
    Recovery, SearchDevice, SearchGoal, SearchOutcome, SearchSlice, SearchSpec, SenderPriority,
};
pub use trial::spec::{
    ArmSchedule, HEADER_BYTES, Length, LoadStep, Pacing, ProbeSpec, SHORT_HEADER_BYTES, StoppingRule,
    TrialSpec, Until,
};
pub use trial::spent::SpentTime;
pub use trial::values::Values;
pub use trial::{RunRecord, RunStatus, Trial, Value, Warning};
pub use units::{Nanoseconds, Rate, UnitError, parse_duration, parse_ratio, print_duration, write_time};
pub use words::{capitalize, count};

/// For `skip_serializing_if`.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

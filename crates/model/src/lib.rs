//! The vocabulary of stacklab: what a study varies, what a run measures and what a finding says.
//!
//! Data, parsing and printing only: no I/O and no clock. Every other crate depends on this one and on
//! nothing else of the project; only the `stacklab` program puts them together.

mod between;
mod cell;
mod difference;
mod environment;
mod family;
mod finding;
mod headers;
mod histogram;
mod host_report;
mod link_config;
mod mechanism;
mod metric;
mod names;
mod noise;
mod run;
mod services;
mod spec;
mod system;
mod topology;
mod trial;
mod tuning;
mod units;
mod value;

pub use between::{Against, Alone, Apart, Between, Change, Recorded, Unpaired};
pub use cell::{Cell, Factor};
pub use difference::Difference;
pub use environment::{CpuScope, HostFacts};
pub use family::{Family, Framing, Probe, Transport};
pub use finding::{
    Adjustment, CellEstimate, Comparison, ComparisonSpec, Effect, Estimate, Explained, Findings, Interval,
    ManyArms, Order, Question, SteadyState, StopReason, StoppingState, Tests, Verdict,
};
pub use headers::{ETHERNET_HEADER_BYTES, WirePath, WireSize, payload_of_frame, wire_size};
pub use histogram::Buckets;
pub use host_report::{
    Clock, Compared, Counters, CpuTime, DelayPoints, Delays, Drops, Endpoint, Exchange, HostReport,
    IntervalRow, Offloads, Point, Received, Role, Sent, TcpInfo,
};
pub use link_config::LinkConfig;
pub use mechanism::{
    Device, Header, Mechanism, MechanismDef, Method, Remote, Setup, Translation, Translator, Tunnel,
};
pub use metric::{Better, Metric, Scale, Unit};
pub use names::{UnknownName, nearest, once_each};
pub use noise::{EchoFloor, NoiseFloor, Spread};
pub use run::{RunRecord, RunStatus, Warning};
pub use services::{NoServices, SERVICES, Service, Services};
pub use spec::{HEADER_BYTES, Io, Length, Pacing, ProbeSpec, StoppingRule, TrialSpec};
pub use system::{SYSTEMS, System, Systems, UnknownSystem};
pub use topology::{Links, OwnLink, RowKind, Topology};
pub use trial::Trial;
pub use tuning::{Direction, SocketOptions, Tuning};
pub use units::{Rate, UnitError, parse_duration, parse_ratio, print_duration};
pub use value::Value;

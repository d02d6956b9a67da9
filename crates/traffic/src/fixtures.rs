//! The specification of a trial, for unit tests.

use stacklab_model::{Cell, Family, Length, Pacing, Probe, ProbeSpec, SizeOf, Transport, TrialSpec};

/// A stream of 1000 messages of 128 bytes.
pub(crate) fn spec(family: Family, transport: Transport) -> TrialSpec {
    let probe = ProbeSpec {
        probe: Probe::Stream,
        pacing: Pacing::Flood,
        length: Length::Packets(1000),
        warmup_ns: 0,
        interval_ns: 100_000_000,
        metrics: Vec::new(),
    };
    TrialSpec::new(1, &Cell::new(family, transport, SizeOf::Payload, 128), probe)
}

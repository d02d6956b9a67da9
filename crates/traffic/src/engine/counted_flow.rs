//! What is counted of one flow.

use crate::stats::flow::{SequenceWindow, Variation};
use crate::stats::ipdv::LastDelays;

pub(crate) struct CountedFlow {
    pub window: SequenceWindow,
    pub variation: Variation,
    /// For the variation in the order of sending, if it is requested.
    pub last: Option<Box<LastDelays>>,
    pub measured: u64,
    pub bytes: u64,
    /// Bytes of the next message that have been counted.
    pub partial: u64,
    /// Measured messages sent, known from the end marker.
    pub expected: Option<u64>,
    pub complete: bool,
}

impl CountedFlow {
    pub(crate) fn new(flows: u32, keeps_delays: bool) -> Self {
        CountedFlow {
            window: SequenceWindow::new(flows),
            variation: Variation::default(),
            last: keeps_delays.then(|| Box::new(LastDelays::new())),
            measured: 0,
            bytes: 0,
            partial: 0,
            expected: None,
            complete: false,
        }
    }
}

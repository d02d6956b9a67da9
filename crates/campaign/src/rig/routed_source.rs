//! The testbed of a routed rig.

use stacklab_model::System;
use stacklab_testbed::{PathCheck, Routed, RoutedSpec, Ticks};

/// A running testbed of four hosts, on this kernel or inside a guest.
pub(crate) struct RoutedSource {
    pub plan: RoutedSpec,
    pub carried: Vec<PathCheck>,
    /// The guest that holds the testbed, if it is not on this kernel.
    pub guest: Option<String>,
    /// The process of that guest, if its kernel does not count its own CPU time.
    pub process: Option<u32>,
    /// The testbed, if it is on this kernel; it is removed when this is dropped.
    pub own: Option<Box<Routed>>,
}

impl RoutedSource {
    /// Guest systems of the clients, if they are guests, and of the routers; the sender's first.
    pub(crate) fn guests(&self) -> [[Option<String>; 2]; 2] {
        let own = self.own.as_ref();
        own.map_or_else(Default::default, |own| own.guests())
    }

    /// Whether the whole testbed is in a guest whose kernel does not count its own CPU time.
    pub(super) fn is_counted_outside(&self) -> bool {
        self.process.is_some()
    }

    /// CPU time so far of that guest's process.
    pub(super) fn guest_ticks(&self) -> Option<Ticks> {
        self.process.map(Ticks::of)
    }

    /// CPU time so far of the processes of clients that are guests; the sender's first.
    pub(super) fn client_ticks(&self) -> [Option<Ticks>; 2] {
        self.own.as_ref().map_or([None, None], |own| own.ticks()[0])
    }

    /// CPU time so far of the routers' processes, if their kernels do not count it themselves.
    pub(crate) fn router_ticks(&self) -> [Option<Ticks>; 2] {
        let routers = &self.plan.kind.routers;
        match (self.guest_ticks(), &self.own) {
            (Some(ticks), _) => [Some(ticks), Some(ticks)],
            (None, Some(own)) if !routers.0.iter().all(System::counts_cpu) => {
                let all = own.ticks()[1];
                [0, 1].map(|number| all[number].filter(|_| !routers.0[number].counts_cpu()))
            }
            _ => [None, None],
        }
    }
}

//! The running testbed that a routed rig is of.

use crate::rig::find_uncounted_cpu;
use stacklab_model::System;
use stacklab_testbed::{PathCheck, Routed, RoutedSpec, Ticks};

/// A running testbed of four hosts, on this kernel or inside a guest.
pub(super) struct RoutedSource {
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
    pub(super) fn guests(&self) -> [[Option<String>; 2]; 2] {
        self.own.as_ref().map_or_else(Default::default, |own| own.guests())
    }

    /// CPU time so far of the routers' processes, if their kernels do not count it themselves.
    pub(super) fn router_ticks(&self) -> [Option<Ticks>; 2] {
        match (self.process, &self.own) {
            (Some(process), _) => [Some(Ticks::of(process)); 2],
            (None, Some(own)) => find_uncounted_cpu(&self.plan.kind.routers, || own.ticks()[1]),
            (None, None) => [None, None],
        }
    }

    pub(super) fn has_one_clock(&self) -> bool {
        let kind = &self.plan.kind;
        self.guest.is_some()
            || kind.clients.0.iter().chain(&kind.routers.0).all(|system| *system == System::Namespace)
    }
}

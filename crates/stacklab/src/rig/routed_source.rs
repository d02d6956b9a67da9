//! Where a testbed with routers comes from, and what is known of it without asking its agents.

use stacklab_model::System;
use stacklab_testbed::Ticks;
use stacklab_testbed::{PathCheck, Routed, RoutedSpec};

/// A testbed of four hosts that stands, on this kernel or inside a guest.
pub struct RoutedSource {
    /// What was built.
    pub plan: RoutedSpec,
    /// What was seen of packets on it.
    pub carried: Vec<PathCheck>,
    /// What the testbed is in, where it is not on this kernel.
    pub guest: Option<String>,
    /// The process of that guest, where its kernel does not count what time it takes.
    pub process: Option<u32>,
    /// The testbed, where it is on this kernel; it goes with this.
    pub own: Option<Box<Routed>>,
}

impl RoutedSource {
    /// What the clients are where they are guests, and what the routers are; the sender's first.
    pub fn guests(&self) -> [[Option<String>; 2]; 2] {
        let own = self.own.as_ref();
        own.map_or_else(Default::default, |own| [own.clients(), own.routers()])
    }

    /// Whether the whole testbed is in a guest whose kernel does not count its time itself.
    pub fn is_counted_outside(&self) -> bool {
        self.process.is_some()
    }

    /// What that guest's process has run until now.
    pub fn guest_ticks(&self) -> Option<Ticks> {
        self.process.map(Ticks::of)
    }

    /// What the processes of clients that are guests have run until now; the sender's first.
    pub fn client_ticks(&self) -> [Option<Ticks>; 2] {
        self.own.as_ref().map_or([None, None], |own| own.client_ticks())
    }

    /// What routers' processes have run until now, where their kernels do not count that themselves.
    pub fn router_ticks(&self) -> [Option<Ticks>; 2] {
        let routers = &self.plan.kind.routers;
        match (self.guest_ticks(), &self.own) {
            (Some(ticks), _) => [Some(ticks), Some(ticks)],
            (None, Some(own)) if !routers.0.iter().all(System::counts_cpu) => {
                let all = own.router_ticks();
                [0, 1].map(|number| all[number].filter(|_| !routers.0[number].counts_cpu()))
            }
            _ => [None, None],
        }
    }
}

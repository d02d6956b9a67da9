//! Testbeds that clean up after themselves: hosts in network namespaces, connected by veth pairs.
//!
//! [`enter`] gets the privilege once, early. [`Testbed::build`] starts two processes, each in a new network
//! namespace, and builds a link between them: addresses of both families, a known MTU, and offloads and rate
//! according to the [`LinkConfig`](stacklab_model::LinkConfig). [`Routed::build`] does the same with four hosts and
//! three links, and adds a transition mechanism between the routers. This crate does not read what the processes
//! write to their pipes.
//!
//! Nothing outlives the process that built it. A namespace has no name and no mount, only its process, and that
//! process dies with its parent (parent-death signal). The machine's own interfaces, routes, settings and firewall
//! are never changed.

pub mod addressing;
mod customers;
pub mod error;
pub mod fuzzing;
pub mod host;
/// Access to the kernel: namespaces, netlink, sysctl, processors, queueing disciplines.
pub mod kernel {
    pub(crate) mod acknowledged;
    pub(crate) mod batch;
    pub(crate) mod belonging;
    pub mod capability;
    pub mod cpus;
    /// Generic netlink: messages are pure, and a socket exchanges them with the kernel.
    pub mod genl {
        pub mod message;
        pub mod socket;
    }
    pub mod memory;
    pub mod namespace;
    pub mod netlink;
    pub(crate) mod privilege;
    pub mod processes;
    pub mod router_thread;
    pub(crate) mod rule;
    pub(crate) mod steering;
    pub mod sys;
    pub mod sysctl;
    /// Queueing disciplines at an end of a link.
    pub mod tc {
        pub mod htb;
        pub(crate) mod part;
        pub(crate) mod queue;
        pub(crate) mod tbf;
    }
    pub(crate) mod watch;
}
pub mod link;
pub mod mechanism;
mod path_ends;
pub mod services;
mod testbed {
    pub(crate) mod connection_tables;
    pub(crate) mod destination_check;
    pub(crate) mod direct;
    pub(crate) mod forwarding_check;
    pub(crate) mod macvlan;
    pub(crate) mod network;
    pub(crate) mod offload_check;
    pub(crate) mod path_check;
    pub(crate) mod publishing;
    pub(crate) mod routed;
    pub(crate) mod routed_spec;
    pub(crate) mod router_queue;
    pub(crate) mod same_port;
    pub(crate) mod spokes;
}
mod topology;
mod uplink;

pub use addressing::{BRIDGE, BSSID, INTERFACE, MIDDLE, Site, TUNNEL, addresses, hardware_address};
pub use customers::CustomerId;
pub use error::{AtHost, Attempt, Fault, TestbedError};
pub use host::interface_bytes::InterfaceBytes;
pub use host::program::{
    AGENT, LOADER, Tool, bundled_command, find, find_in, is_found_by_commands, is_listening, is_listening_in,
    program_in_path,
};
pub use host::version::{first_line, first_line_of_command};
pub use host::workdir::{Workdir, last_words};
pub use host::{
    Attachment, Guest, GuestSpec, Host, Prepare, RunningGuest, Streams, not_built, write_message,
};
pub use kernel::belonging::clear;
pub use kernel::capability::{Ability, FLOWTABLES, FORWARDING, NAT, abilities, check_tun, kept_settings};
pub use kernel::namespace::{
    ChildCpu, Process, end, in_namespace, in_new_namespace, join, spawn_in_namespace, unshare_mounts,
};
pub use kernel::privilege::{Privilege, enter, owns};
pub use kernel::processes::{NamespaceCpu, RunningProcess, Ticks};
pub use kernel::tc::htb::burst_bytes;
pub use kernel::watch::{WATCH, Watch, watch};
pub use mechanism::layers::{Layer, layers};
pub use mechanism::translate::Translates;
pub use mechanism::{Router, RouterInterface, list_router_interfaces};
pub use path_ends::{PathEnds, ends};
pub use testbed::connection_tables::{DeletedConnections, TrackedConnections};
pub use testbed::direct::Testbed;
pub use testbed::path_check::PathCheck;
pub use testbed::routed::{Routed, RoutedStreams};
pub use testbed::routed_spec::RoutedSpec;
pub use topology::{Interface, Node, PathRole};
pub use uplink::{create_uplink, hide_folder, mount_over};

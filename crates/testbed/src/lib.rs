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
//!
//! | folder or file | what it holds |
//! |---|---|
//! | `kernel` | privilege, namespaces, netlink, sysctl, processors, queues, capabilities; `sys`: all unsafe code |
//! | `link` | veth pairs, addresses, routes, offloads, bridges, waiting until a link is quiet |
//! | `host` | a host process, and the trait of guests that can replace it |
//! | `mechanism` | the parts of each transition mechanism on a router |
//! | `testbed` | two hosts and a link, four hosts and three links |
//! | `services` | daemons on the receiver that the sender queries |
//! | [`fuzzing`] | parsers of untrusted input, for fuzz targets |
//! | `topology`, `error` | the hosts' places on the path, and what can go wrong |

pub mod error;
pub mod fuzzing;
pub mod host;
pub mod kernel;
pub mod link;
pub mod mechanism;
pub mod services;
pub mod testbed;
pub mod topology;

pub use error::{AtHost, Attempt, Fault, TestbedError};
pub use host::console::last_words;
pub use host::guest::{Guest, GuestSpec, Prepare, RunningGuest, not_built};
pub use host::launch::Host;
pub use host::path_role::{Interface, PathRole};
pub use host::program::{AGENT, LOADER, bundled, find, find_in, program_in_path};
pub use host::streams::{Streams, write_message};
pub use host::ticks::Ticks;
pub use host::tool::{Tool, first_line};
pub use host::workdir::Workdir;
pub use kernel::capability::{Ability, abilities};
pub use kernel::namespace::{
    ChildCpu, Process, clear, end, in_namespace, join, spawn_in_namespace, unshare_mounts,
};
pub use kernel::privilege::{Privilege, enter, owns};
pub use kernel::running_process::RunningProcess;
pub use kernel::tc::htb::burst_bytes;
pub use link::addressing::{
    BRIDGE, BSSID, INTERFACE, MIDDLE, PathEnds, Site, addresses, ends, hardware_address,
};
pub use mechanism::layers::{Layer, layers};
pub use mechanism::router::Router;
pub use mechanism::translate::Translates;
pub use testbed::direct::Testbed;
pub use testbed::path_check::PathCheck;
pub use testbed::routed::Routed;
pub use testbed::spec::RoutedSpec;
pub use topology::Node;

//! Testbeds that undo themselves: hosts in network namespaces, joined by veth pairs.
//!
//! [`enter`] gets the privilege once, early. [`Testbed::build`] starts two processes, each in a fresh network
//! namespace, and builds a link between them: addresses of both families, a known MTU, offloads and rate as the
//! [`LinkConfig`](stacklab_model::LinkConfig) says. [`Routed::build`] does so with four hosts and three links, and a transition
//! mechanism between the routers. This crate does not read what the processes write on their pipes.
//!
//! Nothing outlives the process that built it: a namespace has no name and no mount, only its process, and that
//! process dies with its parent (parent-death signal). The machine's own interfaces, routes, settings and firewall
//! are never touched.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | `kernel` | privilege, namespaces, netlink, sysctl, processors, queueing disciplines, capabilities; `kernel::sys` has the only unsafe code |
//! | `link` | veth pairs, addresses, routes, offloads, bridges, waiting until a link is quiet |
//! | `host` | a host's process, and the guests that can take its place: gVisor, user-mode Linux, virtual machines |
//! | `guest` | the guest's own side, and the messages that it is told its role by |
//! | `mechanism` | what each transition mechanism builds on a router |
//! | `testbed` | two hosts and a link, four hosts and three links, and where they are built |
//! | `image` | fetching and building what guests boot from |
//! | `services` | daemons on the receiver that the sender asks |
//! | `shell` | commands by hand on the hosts of a testbed inside a guest |
//! | `requirements` | what a study's routed testbeds need of a kernel |
//! | `topology`, `error` | the hosts' places on the path, and what can go wrong |

mod error;
pub mod guest;
mod host;
pub mod image;
mod kernel;
mod link;
mod mechanism;
mod requirements;
pub mod services;
pub mod shell;
mod testbed;
mod topology;

pub use error::TestbedError;
pub use guest::protocol::PathCheck;
pub use host::available::kinds;
pub use host::launch::Host;
pub use host::streams::Streams;
pub use host::ticks::Ticks;
pub use kernel::capability::{Ability, abilities};
pub use kernel::namespace::{clear, end, in_namespace, join};
pub use kernel::privilege::{Privilege, enter};
pub use link::addressing::{Ends, ends};
pub use mechanism::layers::{Layer, layers};
pub use mechanism::translate::Translates;
pub use requirements::Requirements;
pub use testbed::direct::Testbed;
pub use testbed::guest_hosted::{GuestHosted, HostedTestbed};
pub use testbed::placement::{Placement, find_placement};
pub use testbed::routed::{MIDDLE_INTERFACE, Routed};
pub use testbed::spec::RoutedSpec;
pub use topology::Node;

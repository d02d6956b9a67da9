//! Testbeds that undo themselves: two hosts in network namespaces, joined by a veth pair.
//!
//! [`enter`] gets the privilege once, early. [`Testbed::build`] starts two processes, each in a fresh network
//! namespace, and lays a link between them: addresses of both families, a known MTU, offloads and rate as the
//! [`LinkConfig`](stacklab_model::LinkConfig) says. What the processes say on their pipes is none of this crate's business.
//!
//! Nothing outlives the process that built it: a namespace has no name and no mount, only its process, and that
//! process dies with its parent (parent-death signal). The machine's own interfaces, routes, settings and firewall
//! are never touched.
//!
//! | file | what it holds |
//! |---|---|
//! | `privilege` | root, or a user namespace |
//! | `testbed`, `host` | the two processes, the guests in them, and the order in which the link is laid |
//! | `prepare`, `accelerate`, `folder`, `find` | what a guest is started from |
//! | `kinds` | which kinds of hosts can be had here |
//! | `image` | fetching what guests boot from |
//! | `guest`, `part` | the guest's own side, and what it is told |
//! | `services` | daemons on the receiver that the sender asks |
//! | `bridge` | an end of the link handed to a guest |
//! | `routed`, `mechanism` | four hosts in a row, and what is built on the two routers among them |
//! | `lab`, `mux` | a testbed of routers inside a guest, and the streams of its agents over one channel |
//! | `shell`, `terminal` | commands by hand on the hosts of a testbed inside a guest |
//! | `namespace`, `netlink` | doing something inside a namespace |
//! | `address`, `pin` | who has which address, and which processors |
//! | `quiet`, `link`, `offload`, `shape`, `bursts`, `queue`, `steer`, `settle` | one step of the laying each |
//! | `ability` | what this kernel can do, found by doing it |
//! | `sys` | the only unsafe code |

mod ability;
mod accelerate;
mod address;
mod bridge;
mod bursts;
mod error;
mod find;
mod folder;
pub mod guest;
mod host;
pub mod image;
mod kinds;
mod lab;
mod link;
mod mechanism;
mod mux;
mod namespace;
mod netlink;
mod offload;
mod part;
mod pin;
mod prepare;
mod privilege;
mod qemu;
mod queue;
mod quiet;
pub mod routed;
pub mod services;
mod settle;
mod shape;
pub mod shell;
mod steer;
mod sys;
mod terminal;
mod testbed;

pub use ability::{Ability, abilities};
pub use error::TestbedError;
pub use host::{Host, Streams, Ticks};
pub use kinds::kinds;
pub use lab::{GuestLab, Inside, Needs, possible};
pub use mechanism::layers::{Layer, layers};
pub use mechanism::translate::Translates;
pub use namespace::{clear, end, in_namespace, join};
pub use privilege::{Privilege, enter};
pub use testbed::Testbed;

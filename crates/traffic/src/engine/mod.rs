//! The send loop, the receive loop, and the sender and receiver built on them.

pub(crate) mod admit;
#[cfg(test)]
mod allocation_tests;
pub(crate) mod allowance;
pub(crate) mod arms;
pub(crate) mod connect;
pub(crate) mod count;
mod counted_flow;
pub(crate) mod destinations;
mod flow_sender;
pub(crate) mod flows;
pub(crate) mod header;
#[cfg(test)]
mod interleaved_tests;
pub(crate) mod many_ports;
pub(crate) mod mapped;
pub(crate) mod opening;
pub(crate) mod own_socket;
pub(crate) mod pacer;
pub(crate) mod peers;
pub(crate) mod phases;
pub(crate) mod receive_loop;
pub(crate) mod receiver;
pub(crate) mod rx;
pub(crate) mod send_loop;
pub(crate) mod sender;
pub(crate) mod socket;
pub(crate) mod socket_options;
pub(crate) mod sources;
pub(crate) mod stamps;
pub(crate) mod threads;
#[cfg(test)]
mod trial_tests;
pub(crate) mod turns;
pub(crate) mod tx;
pub(crate) mod zerocopy;

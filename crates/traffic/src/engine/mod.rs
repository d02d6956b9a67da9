//! The send loop, the receive loop, and the sender and receiver built on them.

pub(crate) mod admit;
#[cfg(test)]
mod allocation_tests;
pub(crate) mod announce;
pub(crate) mod arms;
pub(crate) mod black_hole;
pub(crate) mod coalesce;
pub(crate) mod connect;
pub(crate) mod count;
pub(crate) mod endpoint;
#[cfg(test)]
mod ends_tests;
pub(crate) mod header;
pub(crate) mod interface_rtt;
pub(crate) mod open_socket;
pub(crate) mod opening;
pub(crate) mod pacer;
pub(crate) mod peers;
pub(crate) mod phases;
pub(crate) mod receive_loop;
pub(crate) mod receiver;
pub(crate) mod reflect;
pub(crate) mod rx;
pub(crate) mod send_loop;
pub(crate) mod sender;
pub(crate) mod socket;
pub(crate) mod socket_options;
pub(crate) mod stamp_clock;
pub(crate) mod threads;
pub(crate) mod turns;
pub(crate) mod tx;
pub(crate) mod zerocopy;

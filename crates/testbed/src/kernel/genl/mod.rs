//! Generic netlink: messages are pure, and a socket exchanges them with the kernel.

pub mod message;
pub mod socket;

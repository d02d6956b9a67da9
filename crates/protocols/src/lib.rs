//! Protocols and programs of others that trials use: each protocol with its codec, client and server beside each
//! other, and the command lines of other traffic generators.

pub mod generators;
#[cfg(unix)]
pub mod iperf3;
pub mod stamp;

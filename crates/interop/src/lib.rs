//! What other programs speak: protocols on the wire, and result files, as bytes and text. No I/O and no clock: the
//! caller has the sockets.

pub mod engines;
pub mod import;
pub mod iperf3;
pub mod stamp;

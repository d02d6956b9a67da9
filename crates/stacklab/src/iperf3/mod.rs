//! Tests with iperf3: its client and its server. The protocol is `stacklab_interop::iperf3`, and streams run by the
//! engine's loops (`stacklab_traffic::foreign`).

pub(crate) mod client;
mod control;
pub(crate) mod figures;
pub(crate) mod server;
mod streams;

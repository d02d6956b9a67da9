//! Readers, one file or folder for each format.

pub(crate) mod atlas;
pub(crate) mod csv;
pub(crate) mod ditg;
pub(crate) mod flent;
pub(crate) mod iperf;
pub(crate) mod iperf3;
pub(crate) mod irtt;
pub(crate) mod netperf;

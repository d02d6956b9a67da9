//! Readers, one file for each format.

pub(crate) mod atlas;
pub(crate) mod csv;
pub(crate) mod ditg;
pub(crate) mod flent;
pub(crate) mod iperf3_json;
pub(crate) mod iperf3_text;
pub(crate) mod iperf_csv;
pub(crate) mod iperf_text;
pub(crate) mod irtt;
pub(crate) mod netperf;

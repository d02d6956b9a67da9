//! Shared by the end-to-end tests.

pub mod capture;
pub mod collector;
pub mod iperf3;
pub mod leftovers;
pub mod link_rig;
pub mod listening;
pub mod others;
pub mod planned;
pub mod program;
pub mod random;
pub mod records;
pub mod relay;
pub mod routed;
pub mod sys;
pub mod tun;

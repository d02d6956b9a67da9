//! Shared by the end-to-end tests.

pub(crate) mod capture;
pub(crate) mod fleet;
pub(crate) mod fleet_relay;
pub(crate) mod iperf3;
pub(crate) mod leftovers;
pub(crate) mod link_rig;
pub(crate) mod listening;
pub(crate) mod nats;
pub(crate) mod nats_relay;
pub(crate) mod others;
pub(crate) mod path;
pub(crate) mod planned;
pub(crate) mod postgres;
pub(crate) mod program;
pub(crate) mod random;
pub(crate) mod records;
pub(crate) mod relay;
pub(crate) mod routed;
pub(crate) mod studies;
pub(crate) mod sys;
pub(crate) mod tun;

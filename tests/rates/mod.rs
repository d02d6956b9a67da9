//! Tests whose figures other load does not change, or that compare rates far below what the machine can do: they run
//! beside others, two at a time.

mod action;
mod busy;
mod capture;
mod compare;
mod endurance;
mod eyeballs;
mod firewall;
mod frugality;
mod generators;
mod impairment;
mod iperf3_client;
mod iperf3_server;
pub(super) mod known_truth;
mod measure;
mod metrics;
mod programs;
mod published;
mod same_arm;
mod slow;
mod smoltcp;
mod strays;
mod tables;
mod truth;
mod tuning;
mod tutorials;

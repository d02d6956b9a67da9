//! Tests that compare rates far below what the machine can do: they run beside others, one at a time.

mod action;
mod capture;
mod compare;
mod endurance;
mod generators;
mod impairment;
mod iperf3_client;
mod iperf3_server;
mod measure;
mod published;
mod slow;
mod strays;
mod tutorials;

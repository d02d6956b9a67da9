//! Tests that boot kernels: they run beside others, two at a time.

mod containers;
mod counted_campaign;
mod customers;
mod exact;
mod exact_programs;
mod mechanisms;
mod nat_and_overlays;
mod ordinary_user;
mod regress;
mod routed_systems;
mod systems;
mod wifi;
mod wifi_capture;
mod wifi_medium;
mod wifi_saturation;
mod wifi_study;

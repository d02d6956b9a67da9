//! System calls without a safe wrapper in the standard library or nix. All unsafe code of the crate is here.
#![allow(unsafe_code)]

mod capture;
mod network;
mod process;

pub(crate) use capture::Capture;
pub(crate) use network::{
    NoTun, bind_at_device, create_lasting, create_named_tun, create_tun, features, open_tun, path_mtu,
    set_discovery, switch_off, switch_on,
};
pub(crate) use process::{NetworkNamespace, die_with_parent, limit};
pub use process::{
    keep_open, kill_group, lead_terminal, make_raw, mount_unseen, open_terminal, put_back, reserve_nothing,
    resize_terminal, run_first, signal_group, window_size,
};

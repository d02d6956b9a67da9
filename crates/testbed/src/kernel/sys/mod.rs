//! System calls without a safe wrapper in the standard library or nix. All unsafe code of the crate is here.
#![allow(unsafe_code)]

mod child;
mod ethtool;
mod packet;
mod priority;
mod terminal;
mod tun;

pub(crate) use child::{Network, die_with_parent, limit_file_size, limit_open_files};
pub use child::{keep_open, kill_group, mount_unseen, signal_group};
pub(crate) use ethtool::{features, switch_off};
pub(crate) use packet::{Capture, never_fragment, path_mtu, probe_path};
pub use priority::{reserve_nothing, run_first};
pub use terminal::{lead_terminal, make_raw, open_terminal, put_back, resize_terminal, window_size};
pub(crate) use tun::{create_lasting, create_tun};

//! System calls without a safe wrapper in the standard library or nix. All unsafe code of the crate is here.
#![allow(unsafe_code)]

mod child;
mod ethtool;
mod packet;
mod path_mtu;
mod priority;
mod terminal;
mod tun;

pub(crate) use child::{
    die_with_parent_in, die_with_parent_in_new_namespace, limit_file_size, limit_open_files,
};
pub use child::{keep_open, kill_group, mount_unseen, signal_group};
pub(crate) use ethtool::{features, switch_off};
pub(crate) use packet::Capture;
pub(crate) use path_mtu::{never_fragment, path_mtu, probe_path};
pub use priority::{reserve_nothing, run_first};
pub use terminal::{lead_terminal, make_raw, open_terminal, put_back, resize_terminal, window_size};
pub(crate) use tun::{create_lasting_tun, create_tap, create_tun};

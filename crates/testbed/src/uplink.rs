//! A namespace whose only way out is this program: a TUN device with the default routes, and files that its programs
//! see in the place of the machine's.

use crate::kernel::netlink::{Route, add_address, raise};
use crate::kernel::sys::create_named_tun;
use crate::{Attempt, Fault};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::mount::{MsFlags, mount};
use stacklab_model::Family;
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

/// Creates a TUN device of this name and MTU in the calling thread's namespace, with these addresses and a default
/// route for each family. Whoever reads and writes the file is the network. Reading does not wait. The device vanishes
/// with the file.
pub fn create_uplink(name: &str, mtu: u32, addresses: &[IpAddr]) -> Result<File, Fault> {
    let file = create_named_tun(name).attempt(format!("create the TUN device {name}"))?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).attempt(format!("read {name} without waiting"))?;
    raise(name, mtu)?;
    for address in addresses {
        add_address(name, *address, if address.is_ipv4() { 32 } else { 128 })?;
    }
    for family in Family::ALL {
        Route { to: (family.unspecified_address(), 0), device: name, via: None, mtu: None }.add()?;
    }
    Ok(file)
}

/// Shows a file in the place of another, to the calling thread and the programs that it starts. The thread has called
/// [`unshare_mounts`](crate::unshare_mounts). The file may then be removed.
pub fn mount_over(file: &Path, place: &Path) -> Result<(), Fault> {
    let step = format!("show {} as {}", file.display(), place.display());
    mount(Some(file), place, None::<&str>, MsFlags::MS_BIND, None::<&str>).attempt(step)
}

/// Hides what a folder has behind an empty one, as [`mount_over`] does with a file.
pub fn hide_folder(folder: &Path) -> Result<(), Fault> {
    let tmpfs = Some("tmpfs");
    mount(tmpfs, folder, tmpfs, MsFlags::empty(), None::<&str>).attempt(format!("hide {}", folder.display()))
}

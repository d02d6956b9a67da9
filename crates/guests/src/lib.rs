//! Hosts with another network stack than this kernel's: virtual machines, user-mode Linux, gVisor and smoltcp, the
//! images that they boot from, and testbeds inside a guest.

mod command;
pub mod fuzzing;
mod hosted;
pub mod image;
pub mod inside;
pub mod kernel;
mod kind {
    mod gvisor;
    pub(crate) mod prepare;
    pub(crate) mod progress;
    pub(crate) mod running;
    mod smoltcp;
    mod uml;
    pub(crate) mod vm;
}
pub mod shell;

pub use command::interrupt_by;
use command::{ImageInfo, Step, describe_failure, run};
pub use hosted::placement::{Placement, Requirements, find_placement};
pub use hosted::{GuestHosted, HostedTestbed, WifiHosted, WifiStreams};
pub use image::{GET_QEMU, QUICKEST_IMAGE, emulator};
use image::{Image, no_image};
pub use inside::protocol::WifiSeen;
use inside::protocol::{
    Greeting, GuestRole, HostedMechanism, HostedRole, MediumQuestion, WifiLook, WifiRole,
};
pub use kind::prepare::{BootFiles, boot_files, kinds, prepare};
use kind::running::{Boot, Running};

//! Hosts with another network stack than this kernel's: virtual machines, user-mode Linux and gVisor, the images that
//! they boot from, and testbeds inside a guest.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | `kind` | each kind of guest, and whether it can run here |
//! | `inside` | the code that runs in a guest, and the messages that carry its role |
//! | `hosted` | testbeds that a guest holds: routed ones, and Wi-Fi networks; where a study's testbeds are built |
//! | `kernel` | kernels for emulated guests, compiled from a source tree |
//! | `image` | fetching and building what guests boot from |
//! | `shell` | manual commands on the hosts of a testbed in a guest |
//! | [`fuzzing`] | parsers of untrusted input, for fuzz targets |

pub mod fuzzing;
mod hosted;
pub mod image;
pub mod inside;
pub mod kernel;
mod kind;
pub mod shell;

pub use hosted::placement::{Placement, find_placement};
pub use hosted::requirements::Requirements;
pub use hosted::routed::{GuestHosted, HostedTestbed};
pub use hosted::wifi::{WifiHosted, WifiStreams};
use image::command::{ImageInfo, Step, failed, run};
use image::installed::{Image, no_image};
pub use inside::protocol::WifiSeen;
use inside::protocol::{Greeting, GuestRole, HostedRole, MediumQuestion, WifiLook, WifiRole};
pub use kind::available::kinds;
pub use kind::prepare::{BootFiles, boot_files, prepare};
use kind::running::{Boot, Running};
pub use kind::vm::machine::emulator;

//! The images that systems boot from, in the program's own folder: fetched once, checked, and never installed on the
//! machine.

pub(crate) mod apt;
mod build;
pub(crate) mod command;
mod cpio;
pub(crate) mod elf;
mod gvisor;
pub(crate) mod initramfs;
pub(crate) mod installed;
pub(crate) mod jool;
mod kernel;
pub(crate) mod modules;
pub(crate) mod tree;
mod uml;
pub(crate) mod wifi;

pub use build::{build, get};
pub use command::Step;
pub use installed::{Image, built, cache, check_architecture, how_to_get, known, sha256};

//! Kernels for emulated guests that count instructions: Debian's, a file, or one that is compiled here from a source
//! tree.

mod build;
mod running;

pub use build::{BuildError, Kernel, MAKEFILE, build_kernel, built_in, kernel_key, lock};
pub use running::{first_error, run_interruptibly};

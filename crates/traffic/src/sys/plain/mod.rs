//! Where one call takes one message and nothing better than poll says which socket is ready. On Linux it is tested only.

mod batch;
mod ready;

#[cfg(not(target_os = "linux"))]
pub use batch::Batch;
#[cfg(not(target_os = "linux"))]
pub use ready::Ready;

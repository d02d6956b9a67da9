//! What any system can do: a call a message, poll to know which socket is ready. On Linux it is tested only.

mod batch;
mod ready;
#[cfg(not(target_os = "linux"))]
mod room;

#[cfg(not(target_os = "linux"))]
pub use batch::Batch;
#[cfg(not(target_os = "linux"))]
pub use ready::Ready;
#[cfg(not(target_os = "linux"))]
pub use room::*;

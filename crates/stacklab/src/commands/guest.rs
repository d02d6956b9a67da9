//! `stacklab guest`.

use crate::cli::tools::GuestOptions;
use crate::failure::Failure;
use stacklab_guests::inside;
use stacklab_traffic::agent::{Permission, alone, serve};
use std::io::BufReader;

/// Runs one host of the outer testbed inside a guest, as its agent until the coordinator is gone; or holds testbeds
/// inside the guest until then.
pub(crate) fn guest(options: &GuestOptions) -> Result<(), Failure> {
    let served = inside::take_role(options.channel.as_deref()).and_then(|stream| {
        // A guest that held whole testbeds is done.
        let Some(stream) = stream else { return Ok(()) };
        // No other host shares this kernel.
        alone();
        serve(BufReader::new(stream.try_clone()?), stream, Permission::default(), |_| {})
    });
    if let Err(error) = &served {
        // Printed before the system shuts down, so that it appears on the console.
        eprintln!("stacklab: {error}");
    }
    inside::leave();
    served.map_err(|reason| Failure::Output { what: "to whoever started this guest".to_owned(), reason })
}

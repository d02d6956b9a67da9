//! `stacklab guest`.

use crate::cli::tools::GuestOptions;
use crate::failure::Failure;
use stacklab_testbed::guest;
use std::io::BufReader;

/// Takes a host's part on the link of the testbed outside, and is its agent until the coordinator is gone; or holds
/// testbeds of its own until then.
pub fn guest(options: &GuestOptions) -> Result<(), Failure> {
    let served = guest::take_role(options.channel.as_deref()).and_then(|stream| {
        // A guest that held whole testbeds is done with them.
        let Some(stream) = stream else { return Ok(()) };
        // The kernel is this host's alone.
        stacklab_traffic::agent::alone();
        stacklab_traffic::agent::serve(BufReader::new(stream.try_clone()?), stream)
    });
    if let Err(error) = &served {
        // Before the system goes, so that it is seen on its console.
        eprintln!("stacklab: {error}");
    }
    guest::leave();
    served.map_err(|reason| Failure::Output { what: "to whoever started this guest".to_owned(), reason })
}

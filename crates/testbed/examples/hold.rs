//! Builds a testbed of two processes that do nothing, says who they are and how it was allowed, and holds it until killed.
//!
//!     cargo run -p stacklab-testbed --example hold
//!
//! The tests kill it, to see that nothing is left; people can look around with `nsenter -t PID -n ip addr`.

use stacklab_model::{LinkConfig, Rate};
use stacklab_testbed::{Testbed, TestbedError, enter};
use std::path::Path;

fn main() -> Result<(), TestbedError> {
    let privilege = enter()?;
    let link_config = LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false };
    // They do not read, so the end of their input does not end them: only their parent's death does.
    let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"])?;
    let [sender, receiver] = testbed.hosts();
    println!("{privilege:?} {} {}", sender.pid(), receiver.pid());
    loop {
        std::thread::park();
    }
}

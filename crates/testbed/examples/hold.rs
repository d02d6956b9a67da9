//! Builds a testbed of two idle processes, prints their process IDs and the privilege that was used, and holds the
//! testbed until killed.
//!
//!     cargo run -p stacklab-testbed --example hold
//!
//! The tests kill it to check that nothing is left behind. A user can inspect it with `nsenter -t PID -n ip addr`.

use stacklab_model::{LinkConfig, Rate};
use stacklab_testbed::{Testbed, TestbedError, enter};
use std::path::Path;

fn main() -> Result<(), TestbedError> {
    let privilege = enter()?;
    let link_config = LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false };
    // They do not read their input, so its end does not end them. Only the death of their parent does.
    let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"])?;
    let [sender, receiver] = testbed.hosts();
    println!("{privilege:?} {} {}", sender.pid(), receiver.pid());
    loop {
        std::thread::park();
    }
}

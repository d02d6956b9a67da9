//! Boots a guest with routed testbeds in it, and prints the headers of their packets on the middle link.
//!
//!     cargo run -p stacklab-guests --example guest_hosted -- uml target/debug/stacklab 6in4 4in6

use stacklab_guests::{GuestHosted, Requirements};
use stacklab_model::{LinkConfig, Links, RoutedKind};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [system, program, mechanisms @ ..] = &words[..] else {
        return Err("SYSTEM PROGRAM MECHANISM..".into());
    };
    let rows = mechanisms.iter().map(|name| Ok(RoutedKind::of_namespaces(name.parse()?)));
    let rows = rows.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
    let requirements = Requirements { rows, link_config, links: Links::default(), forward_only: true };
    let program = Path::new(program).canonicalize()?;
    let (guest, testbeds, _) = GuestHosted::boot(&system.parse()?, &requirements, &program, 0)?;
    println!("{}", guest.version());
    for (spec, checks, _) in testbeds {
        let mechanism = spec.kind.mechanism;
        for seen in checks {
            println!("{mechanism} {} {:?} {}", seen.family, seen.path_mtus, seen.headers.join(" / "));
        }
    }
    Ok(())
}

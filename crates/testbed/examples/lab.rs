//! Boots a guest with testbeds of routers in it and prints what their packets look like on the middle link.
//!
//!     cargo run -p stacklab-testbed --example lab -- uml target/debug/stacklab 6in4 4in6

use stacklab_model::{LinkConfig, Links, RowKind};
use stacklab_testbed::{GuestLab, Needs};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [system, program, mechanisms @ ..] = &words[..] else {
        return Err("SYSTEM PROGRAM MECHANISM..".into());
    };
    let rows = mechanisms.iter().map(|name| Ok(RowKind::of_namespaces(name.parse()?)));
    let rows = rows.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
    let needs = Needs { rows, link_config, links: Links::default(), forward_only: true };
    let program = Path::new(program).canonicalize()?;
    let (lab, testbeds, _) = GuestLab::boot(&system.parse()?, &needs, &program, 0)?;
    println!("{}", lab.version());
    for (plan, carried, _) in testbeds {
        let mechanism = plan.kind.mechanism;
        for seen in carried {
            println!("{mechanism} {} {:?} {}", seen.family, seen.path_mtus, seen.headers.join(" / "));
        }
    }
    Ok(())
}

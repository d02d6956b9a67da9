//! Boots a guest with a Wi-Fi network in it, prints what its stations and its medium report, and runs a command on a
//! host: 0 is the sender, 1 the access point, 2 the receiver.
//!
//!     cargo run -p stacklab-guests --example wifi -- uml-full target/debug/stacklab PASSPHRASE|open [HOST COMMAND..]

use stacklab_guests::WifiHosted;
use stacklab_guests::shell::{listen, run_in_guest};
use stacklab_wifi::{Passphrase, Security, WifiSpec};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [system, program, security, command @ ..] = &words[..] else {
        return Err("SYSTEM PROGRAM PASSPHRASE|open [HOST COMMAND..]".into());
    };
    let security = match security.as_str() {
        "open" => Security::Open,
        passphrase => Security::Wpa2(Passphrase::try_from(passphrase.to_owned())?),
    };
    let program = Path::new(program).canonicalize()?;
    let start = Instant::now();
    let (guest, _streams, commands) =
        WifiHosted::boot(&system.parse()?, &WifiSpec::with_security(security), &program, 1)?;
    println!("{} after {:.1} s\n{:#?}", guest.version(), start.elapsed().as_secs_f64(), guest.state());
    if let [host, command @ ..] = command {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("socket");
        listen(&socket, commands)?;
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let ended = run_in_guest(&socket, host.parse()?, &command)?;
        print!("{}{}", String::from_utf8_lossy(&ended.output), String::from_utf8_lossy(&ended.errors));
        println!("it ended with {}", ended.code);
    }
    Ok(())
}

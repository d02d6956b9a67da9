//! Holds a Wi-Fi network in a guest, in real time, until its standard input ends; and gives commands on its hosts,
//! which have this process's input and output. 0 is the sender, 1 the access point, 2 the receiver. For
//! `bench/wifi-ssh`.
//!
//!     wifi_shell hold SYSTEM PROGRAM PASSPHRASE|open SOCKET
//!     wifi_shell enter SOCKET HOST COMMAND..

use stacklab_guests::WifiHosted;
use stacklab_guests::shell::{MAX_COMMANDS, enter_guest, listen};
use stacklab_model::wifi::{WifiClock, WifiSettings};
use stacklab_wifi::{Passphrase, Security, WifiSpec};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hold", system, program, security, socket] => hold(system, program, security, Path::new(socket)),
        ["enter", socket, host, ref command @ ..] => {
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            let code = enter_guest(Path::new(socket), host.parse()?, command, ("STACKLAB_HOST", host))?;
            std::process::exit(code)
        }
        _ => Err("hold SYSTEM PROGRAM PASSPHRASE|open SOCKET, or enter SOCKET HOST COMMAND..".into()),
    }
}

fn hold(system: &str, program: &str, security: &str, socket: &Path) -> Result<(), Box<dyn Error>> {
    let security = match security {
        "open" => Security::Open,
        passphrase => Security::Wpa2(Passphrase::try_from(passphrase.to_owned())?),
    };
    let settings = WifiSettings { clock: WifiClock::Real, ..WifiSettings::default() };
    let spec = WifiSpec::new(settings, security.clone(), [security.clone(), security])?;
    let program = Path::new(program).canonicalize()?;
    let (guest, _streams, commands) = WifiHosted::boot(&system.parse()?, &spec, &program, MAX_COMMANDS)?;
    listen(socket, commands)?;
    println!("{}", guest.version);
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

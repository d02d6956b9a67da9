//! The client that enters a host: sends the user's input to the command, and prints its output.

use crate::host::streams::write_message;
use crate::shell::frames::{Ask, Bytes, GuestFrame, Order};
use crate::shell::peer::expect_own;
use crate::shell::window::{Raw, terminal};
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write, stderr, stdin, stdout};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The interval for checking the terminal's size.
const LOOK: Duration = Duration::from_millis(250);

/// Runs a command on a host of the testbed, over the socket of the testbed's holder. Host 0 is the sender, host 3 the
/// receiver. The command gets this process's input, output, terminal, folder and environment, and one more variable.
/// Returns its exit code.
///
/// # Errors
/// The holder has ended, or the command cannot be started.
pub fn enter_guest(socket: &Path, host: usize, command: Vec<String>, more: (&str, &str)) -> io::Result<i32> {
    let holder = UnixStream::connect(socket)?;
    expect_own(&holder)?;
    // Variables that are not valid text are not passed on.
    let own =
        env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    let environment = own.chain([(more.0.to_owned(), more.1.to_owned())]).collect();
    let folder = env::current_dir().unwrap_or_else(|_| "/".into());
    let shown = terminal();
    let raw = shown.map(|_| Raw::new()).transpose()?;
    let out = Arc::new(Mutex::new(holder.try_clone()?));
    say(&out, &Ask::Run(Order { host, command, folder, environment, terminal: shown }))?;
    let typed = Arc::clone(&out);
    thread::spawn(move || pass_on_input(&typed));
    if let Some(mut shown) = shown {
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                match terminal() {
                    Some(now) if now != shown => {
                        shown = now;
                        if say(&out, &Ask::Resized(now)).is_err() {
                            return;
                        }
                    }
                    _ => {}
                }
            }
        });
    }
    let ended = hear(holder);
    drop(raw);
    ended
}

fn pass_on_input(out: &Mutex<UnixStream>) {
    let mut room = [0; 4096];
    loop {
        let asked = match stdin().lock().read(&mut room) {
            Ok(0) | Err(_) => Ask::InputEnds,
            Ok(count) => Ask::Input(Bytes(room[..count].to_vec())),
        };
        // The other thread gets the reason from the holder.
        if say(out, &asked).is_err() || asked == Ask::InputEnds {
            return;
        }
    }
}

fn say(out: &Mutex<UnixStream>, ask: &Ask) -> io::Result<()> {
    write_message(&mut *out.lock().unwrap_or_else(PoisonError::into_inner), ask)
}

fn hear(holder: UnixStream) -> io::Result<i32> {
    for line in BufReader::new(holder).lines() {
        match serde_json::from_str(&line?)? {
            GuestFrame::Output(Bytes(bytes)) => stdout().write_all(&bytes).and_then(|()| stdout().flush())?,
            GuestFrame::Errors(Bytes(bytes)) => stderr().write_all(&bytes)?,
            GuestFrame::Ended(code) => return Ok(code),
            GuestFrame::Taken => {}
            GuestFrame::Failed(reason) => return Err(io::Error::other(reason)),
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the testbed has ended"))
}

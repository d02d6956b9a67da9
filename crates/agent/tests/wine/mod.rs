//! The Windows agent under Wine, in a separate Wine prefix below `target`.

use crate::support::CoordinatorEnd;
use stacklab_agent::key::Key;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

const KEY: &str = "0123456789-of-the-tests-alone";

/// Names of Wine's program in packages.
const NAMES: [&str; 4] = ["wine64", "wine64-stable", "/usr/lib/wine/wine64", "wine"];

/// Where `scripts/build-agent` puts the program.
fn program() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("target/windows/x86_64-win7-windows-gnu/agent/stacklab-agent.exe");
    assert!(program.exists(), "{} is not there: run `make agent`", program.display());
    program
}

/// Wine, quiet and isolated: without its own messages (they would mix with the agent's), prompts for other runtimes,
/// menus or a display.
fn wine() -> Command {
    let name = NAMES.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    let mut command = Command::new(name.expect("Wine is not there: install wine64"));
    command
        .env("WINEPREFIX", concat!(env!("CARGO_TARGET_TMPDIR"), "/wine"))
        .env("WINEDEBUG", "-all")
        .env("WINEDLLOVERRIDES", "mscoree,mshtml=;winemenubuilder.exe=d")
        .env("STACKLAB_KEY", KEY)
        .env_remove("DISPLAY")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The agent with these options. The first call creates or updates the prefix, which takes Wine some seconds; this
/// must not count against the time limit of the agent's first answer.
pub(crate) fn agent(options: &[&str]) -> Command {
    static PREFIX: OnceLock<()> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let made = wine().args(["wineboot", "--init"]).stdout(Stdio::null()).status().unwrap();
        assert!(made.success(), "Wine could not make a prefix: {made}");
    });
    let mut command = wine();
    command.arg(program()).args(options);
    command
}

/// An agent on pipes.
pub(crate) fn on_pipes() -> CoordinatorEnd {
    let mut child = agent(&["--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let answers = child.stdout.take().unwrap();
    let requests = child.stdin.take().unwrap();
    CoordinatorEnd {
        answers: Box::new(answers),
        requests: Box::new(requests),
        hang_up: Box::new(move || {
            child.kill().unwrap();
            child.wait().unwrap();
        }),
    }
}

/// An agent that listens until it is dropped.
pub(crate) struct Listening {
    /// Its process.
    pub child: Child,
    /// Its port.
    pub port: u16,
    /// What it has said until it listened.
    pub said: String,
}

/// The key of agents that listen.
pub(crate) fn key() -> Key {
    Key::of(KEY, "the tests").unwrap()
}

/// Starts one on an address without a port, such as `127.0.0.1` or `[::1]`.
pub(crate) fn listening(place: &str, options: &[&str]) -> Listening {
    let place = format!("{place}:0");
    let mut child = agent(&[&["--listen", &place], options].concat()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("measures to it") && errors.read_line(&mut said).unwrap() > 0 {}
    let port = said
        .split("-p ")
        .nth(1)
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    let port = port.unwrap_or_else(|| panic!("no port is said: {said}"));
    Listening { child, port, said }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

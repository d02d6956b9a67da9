//! A daemon of the Wi-Fi network in a host's namespace, and the control sockets of hostapd and wpa_supplicant: text
//! requests and answers in datagrams, and events that begin with `<`.

use stacklab_testbed::{Attempt, Fault, Process, bundled_command, last_words, spawn_in_namespace};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The folder of the programs in a guest, below the root.
pub const FOLDER: &str = "wifi";
/// The file in the folder with the versions of the programs' packages, a line each.
pub const VERSIONS: &str = "versions";

#[derive(Debug)]
pub(crate) struct Daemon {
    name: &'static str,
    process: Process,
    log: PathBuf,
}

impl Daemon {
    /// Starts a program of the guest's image in the network namespace of a process. Its configuration is a file in the
    /// folder, which is created, and the last argument.
    pub(crate) fn start<'a>(
        name: &'static str,
        pid: u32,
        folder: &Path,
        config: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Fault> {
        fs::create_dir_all(folder).attempt(format!("create {}", folder.display()))?;
        let file = folder.join("config");
        let log = folder.join("log");
        fs::write(&file, config).attempt(format!("write {}", file.display()))?;
        let output = File::create(&log).attempt(format!("write {}", log.display()))?;
        let errors = output.try_clone().attempt(format!("write {}", log.display()))?;
        let mut command = bundled_command(FOLDER, name).attempt(format!("find {name}"))?;
        command.args(args.into_iter().map(OsStr::new)).arg(&file);
        command.env_clear().stdin(Stdio::null()).stdout(output).stderr(errors);
        let process = spawn_in_namespace(pid, &mut command, &[])?;
        Ok(Daemon { name, process, log })
    }

    pub(crate) fn check(&mut self) -> io::Result<()> {
        let Some(status) = self.process.status()? else { return Ok(()) };
        Err(io::Error::other(format!("{} has ended ({status}){}", self.name, self.last_words())))
    }

    pub(crate) fn last_words(&self) -> String {
        last_words(&self.log)
    }
}

const MAX_LENGTH: usize = 4096;
/// Timeout for an answer, and for the socket to appear after the daemon's start.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct ControlSocket {
    socket: UnixDatagram,
    own: PathBuf,
    /// Events that came before an awaited answer.
    events: Vec<String>,
}

impl ControlSocket {
    /// Connects to a daemon's socket in a folder, once it is there. `still_runs` is asked while it is not.
    pub(crate) fn open(
        folder: &Path,
        interface: &str,
        mut still_runs: impl FnMut() -> io::Result<()>,
    ) -> Result<Self, Fault> {
        let path = folder.join(interface);
        let own = folder.join("client");
        let attempted = || format!("connect to {}", path.display());
        let start = Instant::now();
        while !path.exists() {
            still_runs().attempt(attempted())?;
            if start.elapsed() > TIMEOUT {
                return Err(io::Error::from(io::ErrorKind::NotFound)).attempt(attempted());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let socket = UnixDatagram::bind(&own).attempt(format!("create {}", own.display()))?;
        socket.connect(&path).attempt(attempted())?;
        Ok(ControlSocket { socket, own, events: Vec::new() })
    }

    pub(crate) fn ask(&mut self, request: &str) -> Result<String, Fault> {
        let attempted = || format!("ask the daemon for {request}");
        self.socket.send(request.as_bytes()).attempt(attempted())?;
        let until = Instant::now() + TIMEOUT;
        loop {
            match self.datagram(until).attempt(attempted())? {
                Some(event) if event.starts_with('<') => self.events.push(event),
                Some(answer) => return Ok(answer),
                None => return Err(io::Error::from(io::ErrorKind::TimedOut)).attempt(attempted()),
            }
        }
    }

    pub(crate) fn status(&mut self) -> Result<BTreeMap<String, String>, Fault> {
        Ok(values(&self.ask("STATUS")?))
    }

    pub(crate) fn attach(&mut self) -> Result<(), Fault> {
        match self.ask("ATTACH")?.trim() {
            "OK" => Ok(()),
            other => Err(format!("it answers {other:?}")).attempt("hear the daemon's events"),
        }
    }

    pub(crate) fn events(&mut self, moment: Duration) -> Result<Vec<String>, Fault> {
        let until = Instant::now() + moment;
        while let Some(said) = self.datagram(until).attempt("hear the daemon's events")? {
            self.events.push(said);
        }
        let events = std::mem::take(&mut self.events);
        Ok(events.iter().map(|event| without_level(event).to_owned()).collect())
    }

    fn datagram(&self, until: Instant) -> io::Result<Option<String>> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        self.socket.set_read_timeout(Some(left))?;
        let mut room = [0; MAX_LENGTH];
        match self.socket.recv(&mut room) {
            Ok(length) => Ok(Some(String::from_utf8_lossy(&room[..length]).into_owned())),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.own);
    }
}

/// Parses lines `NAME=VALUE`. Other lines are left out.
pub(crate) fn values(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, value)) = line.split_once('=') {
            values.insert(name.to_owned(), value.to_owned());
        }
    }
    values
}

fn without_level(event: &str) -> &str {
    event.strip_prefix('<').and_then(|rest| rest.split_once('>')).map_or(event, |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn answers_and_events_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let daemon = UnixDatagram::bind(folder.path().join("st0")).unwrap();
        let answers = thread::spawn(move || {
            let mut room = [0; 64];
            let (length, client) = daemon.recv_from(&mut room).unwrap();
            assert_eq!(&room[..length], b"STATUS");
            let client = client.as_pathname().unwrap().to_owned();
            daemon.send_to(b"<3>CTRL-EVENT-SCAN-STARTED ", &client).unwrap();
            daemon.send_to(b"wpa_state=COMPLETED\nssid=a=b\nnoise\n", &client).unwrap();
        });
        let mut control = ControlSocket::open(folder.path(), "st0", || Ok(())).unwrap();
        let status = control.status().unwrap();
        assert_eq!(status.get("wpa_state").map(String::as_str), Some("COMPLETED"));
        assert_eq!(status.get("ssid").map(String::as_str), Some("a=b"));
        assert_eq!(control.events(Duration::ZERO).unwrap(), ["CTRL-EVENT-SCAN-STARTED "]);
        answers.join().unwrap();
        drop(control);
        assert!(!folder.path().join("client").exists());
    }

    #[test]
    fn a_daemon_that_has_ended_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let control = ControlSocket::open(folder.path(), "st0", || Err(io::Error::other("it has ended")));
        let error = control.unwrap_err();
        assert!(error.to_string().contains("it has ended"), "{error}");
    }
}

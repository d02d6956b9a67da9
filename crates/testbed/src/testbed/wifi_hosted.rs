//! A Wi-Fi network hosted by a guest: the part on this machine.

use crate::error::{Attempt, Fault, TestbedError};
use crate::guest::protocol::{Greeting, GuestRole, WifiRole};
use crate::guest::wifi::CAPTURE;
use crate::host::guest::{GuestSpec, Running};
use crate::host::prepare::prepare_wifi;
use crate::host::streams::Streams;
use crate::host::workdir::Workdir;
use crate::testbed::mux;
use crate::wifi::report::MediumReport;
use crate::wifi::spec::{WifiSpec, WifiState};
use stacklab_model::System;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// A Wi-Fi network hosted by a guest. Dropping it ends the guest.
#[derive(Debug)]
pub struct WifiHosted {
    guest: Running,
    version: String,
    state: WifiState,
    medium: MediumStream,
    capture: Option<PathBuf>,
    _workdir: Workdir,
}

/// The streams of the agents on sender, access point and receiver.
pub type WifiStreams = [Streams; 3];

impl WifiHosted {
    /// Boots a guest, which builds the network. Waits until its stations are associated and packets of both families
    /// have crossed the access point. Up to `commands` commands can run at once on its hosts, over the last streams
    /// ([`crate::shell`]): host 0 is the sender, 1 the access point, 2 the receiver.
    ///
    /// # Errors
    /// The system has no image with Wi-Fi, the guest does not start, or what it reports: a step that failed, or why a
    /// station is not associated.
    pub fn boot(
        system: &System,
        spec: &WifiSpec,
        program: &Path,
        commands: usize,
    ) -> Result<(Self, WifiStreams, Vec<Streams>), TestbedError> {
        let workdir = Workdir::create()?;
        let guest = prepare_wifi(system, program, &workdir, spec.settings().time)?;
        let version = guest.version();
        let failed =
            |fault: Fault| TestbedError::Hosted { guest: version.clone(), reason: fault.to_string() };
        let folder = workdir.for_host("wifi")?;
        let guest_spec = GuestSpec {
            name: "wifi",
            // The guest has its own network and is on no link of this machine.
            namespace: std::process::id(),
            processors: &[],
            offloads: false,
            program,
            folder: &folder,
            role: GuestRole::Wifi(WifiRole { spec: spec.clone(), commands }),
        };
        let mut running = guest.start(&guest_spec).map_err(failed)?;
        let (greeting, read, write) = running.meet_hosted().map_err(failed)?;
        let Greeting::Associated { state } = greeting else {
            let fault: Result<(), Fault> =
                Err(std::io::Error::other("it built none")).attempt("have it build a Wi-Fi network");
            return Err(failed(fault.unwrap_err()));
        };
        let mut streams = mux::open(read, write, HOSTS + 1 + commands).into_iter();
        let hosts = std::array::from_fn(|_| streams.next().expect("there is one for each host"));
        let capture = spec.is_captured().then(|| folder.join(CAPTURE));
        let (answers, asks) = streams.next().expect("there is one for the medium");
        let medium = MediumStream { answers: BufReader::new(answers), asks };
        let hosted =
            WifiHosted { guest: running, version, state: *state, medium, capture, _workdir: workdir };
        Ok((hosted, hosts, streams.collect()))
    }

    /// The network's state after it was built.
    pub fn state(&self) -> &WifiState {
        &self.state
    }

    /// What the medium has counted since the network was built.
    ///
    /// # Errors
    /// The guest has ended, or its answer does not parse.
    pub fn medium_report(&mut self) -> Result<MediumReport, TestbedError> {
        self.medium
            .ask()
            .attempt("ask for the medium's report")
            .map_err(|fault| TestbedError::Hosted { guest: self.version.clone(), reason: fault.to_string() })
    }

    /// The capture of what is on air, if the network has one: pcapng with radiotap headers. It grows as long as the
    /// network exists, and goes with it.
    pub fn capture(&self) -> Option<&Path> {
        self.capture.as_deref()
    }

    /// The guest's process ID.
    pub fn process(&self) -> u32 {
        self.guest.pid()
    }

    /// The guest's name and version: `user-mode Linux 6.12.117`.
    pub fn version(&self) -> &str {
        &self.version
    }
}

const HOSTS: usize = 3;

/// The stream that answers each line with the medium's report.
struct MediumStream {
    answers: BufReader<Box<dyn Read + Send>>,
    asks: Box<dyn Write + Send>,
}

impl MediumStream {
    fn ask(&mut self) -> io::Result<MediumReport> {
        self.asks.write_all(b"report\n")?;
        self.asks.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl fmt::Debug for MediumStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MediumStream")
    }
}

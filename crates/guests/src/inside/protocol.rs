//! The messages that give a guest its role, and the guest's answers: one JSON object per line, on the stream that the
//! agent uses afterwards.

use serde::{Deserialize, Serialize};
use stacklab_model::wifi::WifiClock;
use stacklab_model::{LinkConfig, Links, Mechanism, Rules, Tables, Translator};
use stacklab_testbed::{Interface, PathCheck, PathRole, RoutedSpec};
use stacklab_wifi::{WifiSpec, WifiState};
use std::io::{self, ErrorKind, Read};
use std::time::Duration;

/// The longest line that is read, bytes: roles and answers have some thousands.
const MAX_LINE_LENGTH: usize = 64 << 10;

/// Reads one non-empty line, and no byte after it. `InvalidData` if it is longer than any message. Calls `go_on` after
/// each byte, and every `idle` while the other end is closed or silent. An error from `go_on` ends the wait.
pub(crate) fn read_line(
    stream: &mut impl Read,
    idle: Duration,
    mut go_on: impl FnMut() -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match stream.read(&mut byte) {
            // The other end is not open yet, or is closed permanently.
            Ok(0) => std::thread::sleep(idle),
            Ok(_) if byte[0] == b'\n' && !line.is_empty() => return Ok(line),
            Ok(_) if byte[0] == b'\n' => {}
            Ok(_) if line.len() == MAX_LINE_LENGTH => {
                let text = format!("a line of more than {MAX_LINE_LENGTH} bytes");
                return Err(io::Error::new(ErrorKind::InvalidData, text));
            }
            Ok(_) => line.push(byte[0]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        go_on()?;
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GuestRole {
    Path {
        role: PathRole,
        offloads: bool,
    },
    #[serde(rename = "lab")]
    Hosted(HostedRole),
    Wifi(WifiRole),
}

impl GuestRole {
    /// The role of a Wi-Fi network's guest, which finds it in its folder: a message's time would differ in each run.
    pub(crate) fn wifi(&self) -> Option<&WifiRole> {
        match self {
            GuestRole::Wifi(role) => Some(role),
            _ => None,
        }
    }

    /// Whether the guest hosts whole testbeds. Such a guest is on no link of this machine.
    pub(crate) fn hosts_testbeds(&self) -> bool {
        !matches!(self, GuestRole::Path { .. })
    }

    /// The guest's interfaces on links outside the guest.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        match self {
            GuestRole::Path { role, .. } => role.interfaces(),
            GuestRole::Hosted(_) | GuestRole::Wifi(_) => Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostedRole {
    pub link_config: LinkConfig,
    pub links: Links,
    pub mechanisms: Vec<HostedMechanism>,
    /// The number of commands that can run at once on the hosts of the first testbed.
    pub commands: usize,
}

/// What differs between the routed testbeds in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostedMechanism {
    pub mechanism: Mechanism,
    pub translator: Translator,
    pub rules: Rules,
    pub tables: Tables,
    pub customers: u32,
}

impl HostedMechanism {
    pub(crate) fn of(spec: &RoutedSpec) -> Self {
        HostedMechanism {
            mechanism: spec.kind.mechanism,
            translator: spec.translates[0].by,
            rules: spec.kind.rules,
            tables: spec.kind.tables,
            customers: spec.kind.customers,
        }
    }
}

/// A Wi-Fi network in a guest: a station, an access point, a station.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WifiRole {
    pub spec: WifiSpec,
    /// The number of commands that can run at once on its hosts.
    pub commands: usize,
}

impl WifiRole {
    /// Whether requests come in batches, and the network stands still while none is under way: in virtual time.
    /// Commands have no answer that would end them.
    pub(crate) fn takes_batches(&self) -> bool {
        self.is_virtual() && self.commands == 0
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.spec.settings.clock == WifiClock::Virtual
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WifiLook {
    /// The medium draws from this seed from now on, if there is one.
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MediumQuestion {
    /// What it has counted: a [`stacklab_wifi::MediumReport`].
    Report,
    /// The use of the channel in several sets of windows, nanoseconds of the guest's monotonic clock: a
    /// [`stacklab_model::wifi::ChannelUse`] for each.
    Used(Vec<Vec<[u64; 2]>>),
}

/// The answer to a request to look at the network: the state, or a sentence that says how it is not as planned.
pub type WifiSeen = Result<WifiState, String>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Greeting {
    Waiting,
    /// It has taken its role and is an agent from now on.
    Ready,
    /// Its testbeds are built. It carries the agents' streams of each testbed, four and one for each customer after the
    /// first, then one for each command.
    Built {
        carried: Vec<Vec<PathCheck>>,
    },
    /// Its Wi-Fi network is built. From now on it carries the agents' streams of sender, access point and receiver,
    /// then the stream that answers each [`MediumQuestion`], then that of [`WifiLook`] and [`WifiSeen`],
    /// then one for each command.
    Associated {
        state: Box<WifiState>,
    },
    Failed {
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_end() {
        let idle = Duration::from_millis(1);
        assert_eq!(read_line(&mut &b"\n\n{}\nrest"[..], idle, || Ok(())).unwrap(), b"{}");
        let error = read_line(&mut io::repeat(b'x'), idle, || Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}

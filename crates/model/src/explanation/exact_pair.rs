//! Two arms whose instructions are counted, and what the counting guest has no room for.

use crate::{ExactArm, ExactPath, ExactProbe, Factor, SocketKind};
use serde::{Deserialize, Serialize};

/// Largest message, bytes: one thread sends and receives, so a message has to fit the sockets' buffers.
const MAX_MESSAGE: u32 = 16_384;
const MAX_RULES: u32 = 10_000;
/// The most entries of each family in a table of the guest's router.
const MAX_TABLE: u32 = 200_000;
/// The most entries in the tables of all networks of the guest, both families together: it has a gigabyte of memory.
pub const MAX_ENTRIES: u32 = 700_000;

/// Pairs of compared cells whose instructions a study asks for, and that have no count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncounted {
    pub pairs: usize,
    /// Why they cannot be counted: `to several destinations`; `None` if they can, and were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why a machine that was to count them failed; `None` if none was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Two arms with the same traffic, baseline first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactPair {
    pub probe: ExactProbe,
    pub arms: [ExactArm; 2],
}

impl ExactPair {
    /// Messages of an arm in a round: with the rounds a power of ten, so that figures per message are
    /// short. A connection costs ten times as much as a message.
    pub fn messages(self) -> u64 {
        if self.probe == ExactProbe::Connect { 200 } else { 2_000 }
    }

    /// Refuses what the guest cannot carry, or has no room for.
    pub fn check(&self) -> Result<(), String> {
        self.arms.iter().try_for_each(|arm| check_arm(self.probe, arm))?;
        match count_entries(&self.arms) {
            0..=MAX_ENTRIES => Ok(()),
            entries => Err(format!(
                "{entries} entries in the routers' tables: the emulated machine has room for {MAX_ENTRIES}"
            )),
        }
    }
}

/// The entries of both families in the tables of the arms' networks.
pub fn count_entries<'a>(arms: impl IntoIterator<Item = &'a ExactArm>) -> u32 {
    let mut networks: Vec<&ExactArm> = Vec::new();
    let mut entries: u32 = 0;
    for arm in arms {
        if !networks.iter().any(|known| known.shares_network(arm)) {
            networks.push(arm);
            entries = entries.saturating_add(arm.count_entries());
        }
    }
    entries
}

fn check_arm(probe: ExactProbe, arm: &ExactArm) -> Result<(), String> {
    let ExactArm { family, path, size, rules, socket, .. } = arm;
    check_tables(arm)?;
    if probe != ExactProbe::Connect && !(1..=MAX_MESSAGE).contains(size) {
        return Err(format!(
            "messages of {size} bytes: they can have 1 to {MAX_MESSAGE} bytes, because one thread sends and receives"
        ));
    }
    if !path.carries(*family) {
        return Err(format!("{path} does not carry {family}"));
    }
    if *socket == SocketKind::Ipv4Mapped && *family == crate::Family::Ipv6 {
        return Err("socket ipv4-mapped is of IPv4: use --family ipv4, or leave --family out".to_owned());
    }
    if *rules > MAX_RULES {
        return Err(format!("--rules {rules}: at most {MAX_RULES}"));
    }
    if *rules > 0 && *path == ExactPath::Loopback {
        return Err("--rules needs a receiver in a separate namespace: add --path link".to_owned());
    }
    Ok(())
}

/// What a router's tables can have in the guest.
fn check_tables(arm: &ExactArm) -> Result<(), String> {
    let connections = arm.conntrack.connections();
    for (factor, entries, most) in [
        (Factor::Routes, arm.routes, MAX_TABLE),
        (Factor::Conntrack, connections, MAX_TABLE),
        (Factor::Rules, arm.firewall.count, MAX_RULES),
    ] {
        if entries > most {
            return Err(format!("{factor} {entries}: the emulated machine has room for {most}"));
        }
    }
    if arm.has_tables() && !matches!(arm.path, ExactPath::Routed(_)) {
        return Err("these tables are those of a router: use --path native, or leave --path out".to_owned());
    }
    Ok(())
}

//! The traffic that is counted, and how the options of `explain --exact` choose it.

use stacklab_model::{ExactArm, ExactPath, ExactProbe, Factor, Family, Mechanism, SocketKind, Tracking};
use std::fmt;
use std::str::FromStr;

/// Rounds of a pair. In each, the baseline is counted first, then the candidate.
pub(super) const ROUNDS: usize = 5;
/// Largest message, bytes: one thread sends and receives, so a message has to fit the sockets' buffers.
const MAX_MESSAGE: u32 = 16_384;
const MAX_RULES: u32 = 10_000;
/// The most entries of each family in a table of the guest's router, which has a gigabyte of memory.
const MAX_ENTRIES: u32 = 200_000;
/// Most characters of a plan, which is an argument of the guest's kernel: that takes 2047 in all.
const MAX_LENGTH: usize = 1_800;

/// Two arms with the same traffic, baseline first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExactPair {
    pub probe: ExactProbe,
    pub arms: [ExactArm; 2],
}

impl ExactPair {
    /// Messages of an arm in a round: with the rounds a power of ten, so that figures per message are
    /// short. A connection costs ten times as much as a message.
    pub(super) fn messages(self) -> u64 {
        if self.probe == ExactProbe::Connect { 200 } else { 2_000 }
    }
}

/// Pairs, counted one after the other. As text: `udp:ipv4@loopback/128*0+ipv6@loopback/128*0,..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactPlan {
    pub(super) pairs: Vec<ExactPair>,
}

impl ExactPlan {
    /// The pairs, if they can be counted.
    pub(crate) fn new(pairs: Vec<ExactPair>) -> Result<Self, String> {
        for ExactPair { probe, arms } in &pairs {
            for arm in arms {
                check_tables(arm)?;
                let ExactArm { family, path, size, rules, socket, .. } = arm;
                if *probe != ExactProbe::Connect && !(1..=MAX_MESSAGE).contains(size) {
                    return Err(format!(
                        "--size {size} cannot be counted: messages have 1 to {MAX_MESSAGE} bytes, because one thread sends and receives"
                    ));
                }
                if !path.carries(*family) {
                    return Err(format!("{path} does not carry {family}"));
                }
                if *socket == SocketKind::Ipv4Mapped && *family == Family::Ipv6 {
                    return Err(
                        "socket ipv4-mapped is of IPv4: use --family ipv4, or leave --family out".to_owned()
                    );
                }
                if *rules > MAX_RULES {
                    return Err(format!("--rules {rules}: at most {MAX_RULES}"));
                }
                if *rules > 0 && *path == ExactPath::Loopback {
                    let reason = "--rules needs a receiver in a separate namespace: add --path link";
                    return Err(reason.to_owned());
                }
            }
        }
        let plan = ExactPlan { pairs };
        if plan.to_string().len() > MAX_LENGTH {
            let count = plan.pairs.len();
            return Err(format!("{count} combinations cannot be counted at once: name fewer sizes"));
        }
        Ok(plan)
    }

    /// Probes of these sizes, with two arms whose sizes are set here. Connections have no size.
    pub(crate) fn of(probes: &[ExactProbe], sizes: &[u32], arms: [ExactArm; 2]) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for probe in probes.iter().copied() {
            for size in if probe == ExactProbe::Connect { &[0] } else { sizes } {
                pairs.push(ExactPair { probe, arms: arms.map(|arm| ExactArm { size: *size, ..arm }) });
            }
        }
        ExactPlan::new(pairs)
    }

    pub(super) fn phases(&self) -> usize {
        self.pairs.len() * ROUNDS * 2
    }

    /// Where a machine is that has ended this many phases: `cell 2 of 6: udp, 1408 B`.
    pub(super) fn describe_place(&self, phases: usize) -> String {
        let cells = self.pairs.len().max(1);
        let place = (phases * cells / self.phases().max(1)).min(cells - 1);
        match self.pairs.get(place).filter(|_| phases > 0) {
            Some(pair) => {
                let [arm, _] = &pair.arms;
                // A connection has no size.
                let size = if arm.size == 0 { String::new() } else { format!(", {} B", arm.size) };
                format!("cell {} of {cells}: {}{size}", place + 1, pair.probe)
            }
            None => format!(
                "booting the emulated machine for {cells} {}",
                if cells == 1 { "cell" } else { "cells" }
            ),
        }
    }

    pub(super) fn arms(&self) -> impl Iterator<Item = &ExactArm> {
        self.pairs.iter().flat_map(|pair| &pair.arms)
    }
}

impl fmt::Display for ExactPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, ExactPair { probe, arms: [baseline, candidate] }) in self.pairs.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{probe}:{}+{}", arm_text(baseline), arm_text(candidate))?;
        }
        Ok(())
    }
}

/// What a router's tables can have in the guest.
fn check_tables(arm: &ExactArm) -> Result<(), String> {
    let connections = match arm.conntrack {
        Tracking::Off => 0,
        Tracking::On(connections) => connections,
    };
    for (factor, entries) in [(Factor::Routes, arm.routes), (Factor::Conntrack, connections)] {
        if entries > MAX_ENTRIES {
            return Err(format!("--factor {factor} --levels {entries}: at most {MAX_ENTRIES}"));
        }
    }
    if has_tables(arm) && !matches!(arm.path, ExactPath::Routed(_)) {
        return Err("these tables are those of a router: use --path native, or leave --path out".to_owned());
    }
    Ok(())
}

fn has_tables(arm: &ExactArm) -> bool {
    arm.routes > 0 || arm.conntrack != Tracking::Off
}

fn arm_text(arm: &ExactArm) -> String {
    let ExactArm { family, path, size, rules, routes, conntrack, socket } = arm;
    let mut text = format!("{family}@{path}/{size}*{rules}");
    if *socket != SocketKind::Native {
        text += &format!(":{socket}");
    }
    if has_tables(arm) {
        text += &format!("!{routes}!{conntrack}");
    }
    text
}

fn parse_pair(text: &str) -> Option<ExactPair> {
    let (probe, arms) = text.split_once(':')?;
    let (baseline, candidate) = arms.split_once('+')?;
    let arms = [parse_arm(baseline)?, parse_arm(candidate)?];
    Some(ExactPair { probe: probe.parse().ok()?, arms })
}

fn parse_arm(text: &str) -> Option<ExactArm> {
    let (text, tables) = text.split_once('!').unwrap_or((text, "0!off"));
    let (routes, conntrack) = tables.split_once('!')?;
    let (family, rest) = text.split_once('@')?;
    let (path, rest) = rest.split_once('/')?;
    let (size, rest) = rest.split_once('*')?;
    let (rules, socket) = rest.split_once(':').unwrap_or((rest, SocketKind::Native.name()));
    Some(ExactArm {
        family: family.parse().ok()?,
        path: path.parse().ok()?,
        size: size.parse().ok()?,
        rules: rules.parse().ok()?,
        routes: routes.parse().ok()?,
        conntrack: conntrack.parse().ok()?,
        socket: socket.parse().ok()?,
    })
}

impl FromStr for ExactPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pairs: Option<Vec<ExactPair>> = text.split(',').map(parse_pair).collect();
        let pairs = pairs.ok_or_else(|| {
            format!("`{text}` is not a plan such as udp:ipv4@loopback/128*0+ipv6@loopback/128*0")
        })?;
        ExactPlan::new(pairs)
    }
}

/// The options that choose arms. Empty lists and `None` stand for options that were not given.
#[derive(Debug, Default)]
pub struct ExactRequest {
    /// The traffic.
    pub probes: Vec<ExactProbe>,
    /// Payload bytes.
    pub sizes: Vec<u32>,
    /// The network; loopback without one.
    pub path: Option<ExactPath>,
    /// The factor in which the arms differ: family (the default), mechanism, size, socket, routes or conntrack.
    pub factor: Option<Factor>,
    /// Its two levels.
    pub levels: Vec<String>,
    /// nftables rules at the receiver: one number for both arms, or one for each.
    pub rules: Vec<u32>,
    /// The family of both arms.
    pub family: Option<Family>,
}

impl ExactRequest {
    /// The plan.
    pub fn plan(&self) -> Result<ExactPlan, String> {
        let path = self.path.unwrap_or(ExactPath::Loopback);
        let (rules, compares_rules) = match self.rules[..] {
            [] => ([0, 0], false),
            [rules] => ([rules, rules], false),
            [before, after] => ([before, after], true),
            _ => return Err("--rules takes one number, or two to compare".to_owned()),
        };
        if compares_rules && self.factor.is_some() {
            return Err("--rules A,B compares rules: leave out --factor".to_owned());
        }
        let factor = self.factor.unwrap_or(Factor::Family);
        let both = |path: ExactPath| self.family_over([path, path]).map(|family| [family, family]);
        let arms = match factor {
            _ if compares_rules => combine_arms(both(path)?, [path, path], rules),
            Factor::Family if self.family.is_some() => {
                let reason = "--family is for arms of one family: name their --factor, or --rules A,B";
                return Err(reason.to_owned());
            }
            Factor::Family => combine_arms(self.levels([Family::Ipv4, Family::Ipv6])?, [path, path], rules),
            Factor::Mechanism if self.path.is_some() => {
                return Err("--factor mechanism determines the path: leave out --path".to_owned());
            }
            Factor::Mechanism => {
                let paths = self.levels([Mechanism::Native, Mechanism::Nat64])?.map(ExactPath::Routed);
                let family = self.family_over(paths)?;
                combine_arms([family, family], paths, rules)
            }
            Factor::Size => {
                let sizes: [u32; 2] = self.levels([64, 1408])?;
                let arms = combine_arms(both(path)?, [path, path], rules);
                let sized = [0, 1].map(|arm| ExactArm { size: sizes[arm], ..arms[arm] });
                let pairs = self.probes.iter().filter(|probe| **probe != ExactProbe::Connect);
                return ExactPlan::new(pairs.map(|probe| ExactPair { probe: *probe, arms: sized }).collect());
            }
            Factor::Socket => {
                let sockets = self.levels([SocketKind::Native, SocketKind::Ipv4Mapped])?;
                let family = self.family.unwrap_or(Family::Ipv4);
                let arms = combine_arms([family, family], [path, path], rules);
                [0, 1].map(|arm| ExactArm { socket: sockets[arm], ..arms[arm] })
            }
            Factor::Routes | Factor::Conntrack => return self.plan_tables(factor, rules),
            other => {
                return Err(format!(
                    "--exact compares family, mechanism, size, socket, routes, conntrack or --rules A,B, not {other}"
                ));
            }
        };
        ExactPlan::of(&self.probes, &self.sizes, arms)
    }

    /// Arms whose routers have other tables, for each family that was not left out.
    fn plan_tables(&self, factor: Factor, rules: [u32; 2]) -> Result<ExactPlan, String> {
        let path = self.path.unwrap_or(ExactPath::Routed(Mechanism::Native));
        let mut pairs = Vec::new();
        for family in Family::ALL {
            if self.family.is_some_and(|only| only != *family)
                || self.family.is_none() && !path.carries(*family)
            {
                continue;
            }
            let mut arms = combine_arms([*family, *family], [path, path], rules);
            if factor == Factor::Routes {
                let routes = self.levels([0, 100_000])?;
                arms = [0, 1].map(|arm| ExactArm { routes: routes[arm], ..arms[arm] });
            } else {
                let conntrack = self.levels([Tracking::Off, Tracking::On(20_000)])?;
                arms = [0, 1].map(|arm| ExactArm { conntrack: conntrack[arm], ..arms[arm] });
            }
            pairs.extend(ExactPlan::of(&self.probes, &self.sizes, arms)?.pairs);
        }
        ExactPlan::new(pairs)
    }

    /// The two levels that were named, or these.
    fn levels<T: FromStr<Err: ToString> + Copy>(&self, otherwise: [T; 2]) -> Result<[T; 2], String> {
        match &self.levels[..] {
            [] => Ok(otherwise),
            [before, after] => Ok([parse_level(before)?, parse_level(after)?]),
            _ => Err("--levels takes two: A,B".to_owned()),
        }
    }

    /// The family that was named, or the first of IPv6 and IPv4 that both paths carry.
    fn family_over(&self, paths: [ExactPath; 2]) -> Result<Family, String> {
        if let Some(family) = self.family {
            return Ok(family);
        }
        for family in [Family::Ipv6, Family::Ipv4] {
            if paths.iter().all(|path| path.carries(family)) {
                return Ok(family);
            }
        }
        Err(format!("{} and {} carry no family in common", paths[0], paths[1]))
    }
}

/// Arms whose sizes are set later, and whose sockets are of their family.
fn combine_arms(families: [Family; 2], paths: [ExactPath; 2], rules: [u32; 2]) -> [ExactArm; 2] {
    [0, 1].map(|arm| ExactArm {
        family: families[arm],
        path: paths[arm],
        size: 0,
        rules: rules[arm],
        routes: 0,
        conntrack: Tracking::Off,
        socket: SocketKind::Native,
    })
}

fn parse_level<T: FromStr<Err: ToString>>(level: &str) -> Result<T, String> {
    level.parse().map_err(|wrong: T::Err| format!("--levels {level}: {}", wrong.to_string()))
}

#[cfg(test)]
mod tests;

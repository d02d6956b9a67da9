//! The traffic that is counted, and how the options of `explain --exact` choose it.

use stacklab_model::{
    ExactArm, ExactPair, ExactPath, ExactProbe, Factor, Family, Mechanism, Rules, SocketKind, Tracking,
};
use stacklab_study::ONE_NEIGHBOUR_TABLE;
use std::fmt;
use std::str::FromStr;

/// Rounds of a pair. In each, the baseline is counted first, then the candidate.
pub(super) const ROUNDS: usize = 5;
/// Most characters of a plan, which is an argument of the guest's kernel: that takes 2047 in all.
const MAX_LENGTH: usize = 1_800;

/// Pairs, counted one after the other. As text: `udp:ipv4@loopback/128*0+ipv6@loopback/128*0,..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactPlan {
    pub(super) pairs: Vec<ExactPair>,
}

impl ExactPlan {
    /// The pairs, if they can be counted.
    pub(crate) fn new(pairs: Vec<ExactPair>) -> Result<Self, String> {
        pairs.iter().try_for_each(ExactPair::check)?;
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

fn arm_text(arm: &ExactArm) -> String {
    let ExactArm { family, path, size, rules, routes, conntrack, firewall, socket } = arm;
    let mut text = format!("{family}@{path}/{size}*{rules}");
    if *socket != SocketKind::Native {
        text += &format!(":{socket}");
    }
    if arm.has_tables() {
        text += &format!("!{routes}!{conntrack}");
    }
    if firewall.count > 0 {
        text += &format!("!{}!{}", firewall.count, firewall.form);
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
    let mut tables = tables.split('!');
    let routes = tables.next()?.parse().ok()?;
    let conntrack = tables.next()?.parse().ok()?;
    let firewall = parse_firewall(&mut tables)?;
    if tables.next().is_some() {
        return None;
    }
    let (family, rest) = text.split_once('@')?;
    let (path, rest) = rest.split_once('/')?;
    let (size, rest) = rest.split_once('*')?;
    let (rules, socket) = rest.split_once(':').unwrap_or((rest, SocketKind::Native.name()));
    Some(ExactArm {
        family: family.parse().ok()?,
        path: path.parse().ok()?,
        size: size.parse().ok()?,
        rules: rules.parse().ok()?,
        routes,
        conntrack,
        firewall,
        socket: socket.parse().ok()?,
    })
}

/// The number of rules and their form, if the router has a firewall.
fn parse_firewall<'a>(rest: &mut impl Iterator<Item = &'a str>) -> Option<Rules> {
    let Some(count) = rest.next() else { return Some(Rules::default()) };
    Some(Rules { count: count.parse().ok()?, form: rest.next()?.parse().ok()? })
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
    /// The factor in which the arms differ: family (the default), mechanism, size, socket, routes, conntrack
    /// or rules.
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
            Factor::Routes | Factor::Conntrack | Factor::Rules => {
                return self.plan_tables(factor, rules);
            }
            Factor::Neighbours => {
                return Err(format!("--factor neighbours cannot be counted: {ONE_NEIGHBOUR_TABLE}"));
            }
            other => {
                return Err(format!(
                    "--exact compares family, mechanism, size, socket, routes, conntrack, rules or --rules A,B, not {other}"
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
            match factor {
                Factor::Routes => {
                    let routes = self.levels([0, 100_000])?;
                    arms = [0, 1].map(|arm| ExactArm { routes: routes[arm], ..arms[arm] });
                }
                Factor::Rules => {
                    let counts = self.levels([0, 1000])?;
                    for (arm, count) in arms.iter_mut().zip(counts) {
                        arm.firewall.count = count;
                    }
                }
                _ => {
                    let conntrack = self.levels([Tracking::Off, Tracking::On(20_000)])?;
                    arms = [0, 1].map(|arm| ExactArm { conntrack: conntrack[arm], ..arms[arm] });
                }
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
        firewall: Rules::default(),
        socket: SocketKind::Native,
    })
}

fn parse_level<T: FromStr<Err: ToString>>(level: &str) -> Result<T, String> {
    level.parse().map_err(|wrong: T::Err| format!("--levels {level}: {}", wrong.to_string()))
}

#[cfg(test)]
mod tests;

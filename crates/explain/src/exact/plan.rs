//! The traffic that is counted, and how the options of `explain --exact` choose it.

use stacklab_model::{ExactArm, ExactPath, ExactProbe, Factor, Family, Mechanism, SocketKind};
use std::fmt;
use std::str::FromStr;

/// Rounds of a pair. In each, the baseline is counted first, then the candidate.
pub(super) const ROUNDS: usize = 5;
/// Largest message, bytes: one thread sends and receives, so a message has to fit the sockets' buffers.
const MAX_MESSAGE: u32 = 16_384;
const MAX_RULES: u32 = 10_000;
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
            for ExactArm { family, path, size, rules, socket } in arms {
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

fn arm_text(ExactArm { family, path, size, rules, socket }: &ExactArm) -> String {
    let arm = format!("{family}@{path}/{size}*{rules}");
    if *socket == SocketKind::Native { arm } else { format!("{arm}:{socket}") }
}

fn parse_pair(text: &str) -> Option<ExactPair> {
    let (probe, arms) = text.split_once(':')?;
    let (baseline, candidate) = arms.split_once('+')?;
    let arms = [parse_arm(baseline)?, parse_arm(candidate)?];
    Some(ExactPair { probe: probe.parse().ok()?, arms })
}

fn parse_arm(text: &str) -> Option<ExactArm> {
    let (family, rest) = text.split_once('@')?;
    let (path, rest) = rest.split_once('/')?;
    let (size, rest) = rest.split_once('*')?;
    let (rules, socket) = rest.split_once(':').unwrap_or((rest, SocketKind::Native.name()));
    Some(ExactArm {
        family: family.parse().ok()?,
        path: path.parse().ok()?,
        size: size.parse().ok()?,
        rules: rules.parse().ok()?,
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
    /// The factor in which the arms differ: family (the default), mechanism, size or socket.
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
            other => {
                return Err(format!(
                    "--exact compares family, mechanism, size, socket or --rules A,B, not {other}"
                ));
            }
        };
        ExactPlan::of(&self.probes, &self.sizes, arms)
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
        socket: SocketKind::Native,
    })
}

fn parse_level<T: FromStr<Err: ToString>>(level: &str) -> Result<T, String> {
    level.parse().map_err(|wrong: T::Err| format!("--levels {level}: {}", wrong.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, Mechanism};

    fn families(
        probes: &[ExactProbe],
        sizes: &[u32],
        path: ExactPath,
        rules: u32,
    ) -> Result<ExactPlan, String> {
        let socket = SocketKind::Native;
        let arms =
            [Family::Ipv4, Family::Ipv6].map(|family| ExactArm { family, path, size: 0, rules, socket });
        ExactPlan::of(probes, sizes, arms)
    }

    #[test]
    fn plan_reads_back_as_written() {
        let plan =
            families(&[ExactProbe::Udp, ExactProbe::Connect], &[128, 1408], ExactPath::Loopback, 0).unwrap();
        assert_eq!(
            plan.to_string(),
            "udp:ipv4@loopback/128*0+ipv6@loopback/128*0,udp:ipv4@loopback/1408*0+ipv6@loopback/1408*0,\
             connect:ipv4@loopback/0*0+ipv6@loopback/0*0"
        );
        assert_eq!(plan.to_string().parse(), Ok(plan.clone()));
        assert_eq!(plan.phases(), 30);
        let places = [0, 1, 10, 29, 30].map(|phases| plan.describe_place(phases));
        assert_eq!(places[0], "booting the emulated machine for 3 cells");
        assert_eq!(places[1..3], ["cell 1 of 3: udp, 128 B", "cell 2 of 3: udp, 1408 B"]);
        assert_eq!(places[3..], ["cell 3 of 3: connect", "cell 3 of 3: connect"]);
        let socket = SocketKind::Native;
        let arms = [Mechanism::Native, Mechanism::SixInFour].map(|mechanism| {
            let path = ExactPath::Routed(mechanism);
            ExactArm { family: Family::Ipv6, path, size: 64, rules: 9, socket }
        });
        let plan = ExactPlan::new(vec![ExactPair { probe: ExactProbe::Tcp, arms }]).unwrap();
        assert_eq!(plan.to_string(), "tcp:ipv6@native/64*9+ipv6@6in4/64*9");
        assert_eq!(plan.to_string().parse(), Ok(plan));
        for wrong in [
            "",
            "udp",
            "udp:ipv4@loopback/1*0",
            "sctp:ipv4@link/1*0+ipv6@link/1*0",
            "udp:ipv4@link/1*0+ipv6@link/1*0,",
            "udp:ipv4@x/1*0+ipv6@link/1*0",
        ] {
            assert!(wrong.parse::<ExactPlan>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn refuses_what_cannot_be_counted() {
        for size in [0, 16_385] {
            let error = families(&[ExactProbe::Udp], &[size], ExactPath::Loopback, 0).unwrap_err();
            assert!(error.contains("1 to 16384 bytes"), "{error}");
        }
        let many: Vec<u32> = (1..=50).collect();
        let error = families(&[ExactProbe::Udp], &many, ExactPath::Loopback, 0).unwrap_err();
        assert!(error.contains("fewer sizes"), "{error}");
        let tunnel = ExactPath::Routed(Mechanism::SixInFour);
        let error = families(&[ExactProbe::Udp], &[64], tunnel, 0).unwrap_err();
        assert_eq!(error, "6in4 does not carry ipv4");
        for (path, rules, why) in
            [(ExactPath::Loopback, 1, "--path link"), (ExactPath::Link, 10_001, "at most 10000")]
        {
            let error = families(&[ExactProbe::Udp], &[64], path, rules).unwrap_err();
            assert!(error.contains(why));
        }
    }

    fn udp() -> ExactRequest {
        ExactRequest { probes: vec![ExactProbe::Udp], sizes: vec![128], ..ExactRequest::default() }
    }

    fn print_plan(request: &ExactRequest) -> String {
        request.plan().unwrap().to_string()
    }

    #[test]
    fn arms_differ_in_one_factor() {
        assert_eq!(print_plan(&udp()), "udp:ipv4@loopback/128*0+ipv6@loopback/128*0");
        let link = Some(ExactPath::Link);
        assert_eq!(
            print_plan(&ExactRequest { path: link, rules: vec![0, 10], family: Some(Family::Ipv4), ..udp() }),
            "udp:ipv4@link/128*0+ipv4@link/128*10"
        );
        let factor = Some(Factor::Mechanism);
        assert_eq!(print_plan(&ExactRequest { factor, ..udp() }), "udp:ipv6@native/128*0+ipv6@nat64/128*0");
        let levels = vec!["native".to_owned(), "4in6".to_owned()];
        assert_eq!(
            print_plan(&ExactRequest { factor, levels, ..udp() }),
            "udp:ipv4@native/128*0+ipv4@4in6/128*0"
        );
        let factor = Some(Factor::Size);
        assert_eq!(
            print_plan(&ExactRequest { factor, ..udp() }),
            "udp:ipv6@loopback/64*0+ipv6@loopback/1408*0"
        );
        let sockets = ExactRequest { factor: Some(Factor::Socket), ..udp() };
        assert_eq!(print_plan(&sockets), "udp:ipv4@loopback/128*0+ipv4@loopback/128*0:ipv4-mapped");
        assert_eq!(print_plan(&sockets).parse(), sockets.plan());
    }

    #[test]
    fn refuses_options_that_contradict_each_other() {
        let mechanism = Some(Factor::Mechanism);
        let tunnels = vec!["6in4".to_owned(), "4in6".to_owned()];
        let unknown = vec!["native".to_owned(), "x".to_owned()];
        for (request, why) in [
            (ExactRequest { rules: vec![1, 2, 3], ..udp() }, "one number, or two"),
            (ExactRequest { rules: vec![1, 2], factor: mechanism, ..udp() }, "leave out --factor"),
            (ExactRequest { family: Some(Family::Ipv4), ..udp() }, "--family is for arms of one family"),
            (ExactRequest { factor: mechanism, path: Some(ExactPath::Link), ..udp() }, "leave out --path"),
            (ExactRequest { factor: mechanism, levels: tunnels, ..udp() }, "no family in common"),
            (ExactRequest { factor: mechanism, levels: unknown, ..udp() }, "--levels x: "),
            (ExactRequest { levels: vec!["ipv4".to_owned()], ..udp() }, "takes two"),
            (ExactRequest { factor: Some(Factor::Io), ..udp() }, "not io"),
            (
                ExactRequest { factor: Some(Factor::Socket), family: Some(Family::Ipv6), ..udp() },
                "ipv4-mapped is of IPv4",
            ),
        ] {
            let error = request.plan().unwrap_err();
            assert!(error.contains(why), "{request:?}: {error}");
        }
    }
}

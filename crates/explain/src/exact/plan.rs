//! The traffic that is counted.

use stacklab_model::{ExactArm, ExactPath, ExactProbe};
use std::fmt;
use std::str::FromStr;

/// Rounds of a pair. In each, the baseline is counted first, then the candidate.
pub(super) const ROUNDS: usize = 5;
/// Largest message, bytes: one thread sends and receives, so a message has to fit the sockets' buffers.
const LARGEST: u32 = 16_384;
/// Most nftables rules.
const MOST_RULES: u32 = 10_000;
/// Most characters of a plan, which is an argument of the guest's kernel: that takes 2047 in all.
const LONGEST: usize = 1_800;

/// Two arms with the same traffic, baseline first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactPair {
    /// The traffic.
    pub probe: ExactProbe,
    /// The arms.
    pub arms: [ExactArm; 2],
}

impl ExactPair {
    /// Messages of an arm in a round: with the rounds a power of ten, so that figures per message are
    /// short. A connection costs ten times as much as a message.
    pub(super) fn messages(self) -> u64 {
        match self.probe {
            ExactProbe::Connect => 200,
            _ => 2_000,
        }
    }
}

/// Pairs, counted one after the other. As text: `udp:ipv4@loopback/128*0+ipv6@loopback/128*0,..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactPlan {
    pub(super) pairs: Vec<ExactPair>,
}

impl ExactPlan {
    /// The pairs, if they can be counted.
    ///
    /// # Errors
    /// A size or number of rules out of range, a path that does not carry a family, or too many pairs.
    pub fn new(pairs: Vec<ExactPair>) -> Result<Self, String> {
        for ExactPair { probe, arms } in &pairs {
            for ExactArm { family, path, size, rules } in arms {
                if *probe != ExactProbe::Connect && !(1..=LARGEST).contains(size) {
                    return Err(format!(
                        "--size {size} cannot be counted: messages have 1 to {LARGEST} bytes, because one thread sends and receives"
                    ));
                }
                if !path.carries(*family) {
                    return Err(format!("{path} does not carry {family}"));
                }
                if *rules > MOST_RULES {
                    return Err(format!("--rules {rules}: at most {MOST_RULES}"));
                }
                if *rules > 0 && *path == ExactPath::Loopback {
                    return Err(
                        "--rules needs a receiver in a separate namespace: add --path link".to_owned()
                    );
                }
            }
        }
        let plan = ExactPlan { pairs };
        let length = plan.to_string().len();
        match length > LONGEST {
            true => {
                Err(format!("{} combinations cannot be counted at once: name fewer sizes", plan.pairs.len()))
            }
            false => Ok(plan),
        }
    }

    /// Probes of these sizes, with two arms whose sizes are set here. Connections have no size.
    ///
    /// # Errors
    /// Those of [`ExactPlan::new`].
    pub fn of(probes: &[ExactProbe], sizes: &[u32], arms: [ExactArm; 2]) -> Result<Self, String> {
        let sized = |probe| match probe {
            ExactProbe::Connect => &[0],
            _ => sizes,
        };
        let of_probe = |probe: &ExactProbe| {
            let probe = *probe;
            sized(probe)
                .iter()
                .map(move |size| ExactPair { probe, arms: arms.map(|arm| ExactArm { size: *size, ..arm }) })
        };
        ExactPlan::new(probes.iter().flat_map(of_probe).collect())
    }

    /// How many phases the plugin counts.
    pub(super) fn phases(&self) -> usize {
        self.pairs.len() * ROUNDS * 2
    }

    pub(super) fn arms(&self) -> impl Iterator<Item = &ExactArm> {
        self.pairs.iter().flat_map(|pair| &pair.arms)
    }
}

impl fmt::Display for ExactPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, ExactPair { probe, arms: [baseline, candidate] }) in self.pairs.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{probe}:{}+{}", ArmText(baseline), ArmText(candidate))?;
        }
        Ok(())
    }
}

struct ArmText<'a>(&'a ExactArm);

impl fmt::Display for ArmText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExactArm { family, path, size, rules } = self.0;
        write!(f, "{family}@{path}/{size}*{rules}")
    }
}

fn arm(text: &str) -> Option<ExactArm> {
    let (family, rest) = text.split_once('@')?;
    let (path, rest) = rest.split_once('/')?;
    let (size, rules) = rest.split_once('*')?;
    Some(ExactArm {
        family: family.parse().ok()?,
        path: path.parse().ok()?,
        size: size.parse().ok()?,
        rules: rules.parse().ok()?,
    })
}

impl FromStr for ExactPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |text: &str| {
            let (probe, arms) = text.split_once(':')?;
            let (baseline, candidate) = arms.split_once('+')?;
            Some(ExactPair { probe: probe.parse().ok()?, arms: [arm(baseline)?, arm(candidate)?] })
        };
        let pairs: Option<Vec<ExactPair>> = text.split(',').map(pair).collect();
        let pairs = pairs.ok_or_else(|| {
            format!("`{text}` is not a plan such as udp:ipv4@loopback/128*0+ipv6@loopback/128*0")
        })?;
        ExactPlan::new(pairs)
    }
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
        let arms = [Family::Ipv4, Family::Ipv6].map(|family| ExactArm { family, path, size: 0, rules });
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
        let arm = |path| ExactArm { family: Family::Ipv6, path, size: 64, rules: 9 };
        let arms =
            [Mechanism::Native, Mechanism::SixInFour].map(|mechanism| arm(ExactPath::Routed(mechanism)));
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
        let over = |path, rules| families(&[ExactProbe::Udp], &[64], path, rules).unwrap_err();
        assert_eq!(over(ExactPath::Routed(Mechanism::SixInFour), 0), "6in4 does not carry ipv4");
        assert!(over(ExactPath::Loopback, 1).contains("--path link"));
        assert!(over(ExactPath::Link, 10_001).contains("at most 10000"));
    }
}

//! A plan from the options of `explain --exact`.

use crate::exact::plan::{ExactPair, ExactPlan};
use stacklab_model::{ExactArm, ExactPath, ExactProbe, Factor, Family, Mechanism};
use std::str::FromStr;

/// The options that choose arms. Empty lists and `None` stand for options that were not given.
#[derive(Debug, Default)]
pub struct ExactRequest {
    /// The traffic.
    pub probes: Vec<ExactProbe>,
    /// Payload bytes.
    pub sizes: Vec<u32>,
    /// The network; loopback without one.
    pub path: Option<ExactPath>,
    /// The factor in which the arms differ: family (the default), mechanism or size.
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
    ///
    /// # Errors
    /// Options that contradict each other, a wrong level, or those of [`ExactPlan::new`].
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
        let arms = |families: [Family; 2], paths: [ExactPath; 2]| {
            [0, 1].map(|arm| ExactArm { family: families[arm], path: paths[arm], size: 0, rules: rules[arm] })
        };
        let both = |path: ExactPath| self.family_over([path, path]).map(|family| [family, family]);
        let arms = match factor {
            _ if compares_rules => arms(both(path)?, [path, path]),
            Factor::Family if self.family.is_some() => {
                return Err(
                    "--family is for arms of one family: name their --factor, or --rules A,B".to_owned()
                );
            }
            Factor::Family => arms(self.levels([Family::Ipv4, Family::Ipv6])?, [path, path]),
            Factor::Mechanism if self.path.is_some() => {
                return Err("--factor mechanism determines the path: leave out --path".to_owned());
            }
            Factor::Mechanism => {
                let paths = self.levels([Mechanism::Native, Mechanism::Nat64])?.map(ExactPath::Routed);
                let family = self.family_over(paths)?;
                arms([family, family], paths)
            }
            Factor::Size => {
                let sizes: [u32; 2] = self.levels([64, 1408])?;
                let arms = arms(both(path)?, [path, path]);
                let sized = [0, 1].map(|arm| ExactArm { size: sizes[arm], ..arms[arm] });
                let pairs = self.probes.iter().filter(|probe| **probe != ExactProbe::Connect);
                return ExactPlan::new(pairs.map(|probe| ExactPair { probe: *probe, arms: sized }).collect());
            }
            other => {
                return Err(format!("--exact compares family, mechanism, size or --rules A,B, not {other}"));
            }
        };
        ExactPlan::of(&self.probes, &self.sizes, arms)
    }

    /// The two levels that were named, or these.
    fn levels<T: FromStr<Err: ToString> + Copy>(&self, otherwise: [T; 2]) -> Result<[T; 2], String> {
        let parsed = |level: &String| {
            level.parse::<T>().map_err(|wrong| format!("--levels {level}: {}", wrong.to_string()))
        };
        match &self.levels[..] {
            [] => Ok(otherwise),
            [before, after] => Ok([parsed(before)?, parsed(after)?]),
            _ => Err("--levels takes two: A,B".to_owned()),
        }
    }

    /// The family that was named, or the first of IPv6 and IPv4 that both paths carry.
    fn family_over(&self, paths: [ExactPath; 2]) -> Result<Family, String> {
        let carried = |family: &Family| paths.iter().all(|path| path.carries(*family));
        let family = self.family.or_else(|| [Family::Ipv6, Family::Ipv4].into_iter().find(carried));
        family.ok_or_else(|| format!("{} and {} carry no family in common", paths[0], paths[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp() -> ExactRequest {
        ExactRequest { probes: vec![ExactProbe::Udp], sizes: vec![128], ..ExactRequest::default() }
    }

    #[test]
    fn arms_differ_in_one_factor() {
        let text = |request: &ExactRequest| request.plan().unwrap().to_string();
        assert_eq!(text(&udp()), "udp:ipv4@loopback/128*0+ipv6@loopback/128*0");
        let link = Some(ExactPath::Link);
        assert_eq!(
            text(&ExactRequest { path: link, rules: vec![0, 10], family: Some(Family::Ipv4), ..udp() }),
            "udp:ipv4@link/128*0+ipv4@link/128*10"
        );
        let factor = Some(Factor::Mechanism);
        assert_eq!(text(&ExactRequest { factor, ..udp() }), "udp:ipv6@native/128*0+ipv6@nat64/128*0");
        let levels = vec!["native".to_owned(), "4in6".to_owned()];
        assert_eq!(text(&ExactRequest { factor, levels, ..udp() }), "udp:ipv4@native/128*0+ipv4@4in6/128*0");
        let factor = Some(Factor::Size);
        assert_eq!(text(&ExactRequest { factor, ..udp() }), "udp:ipv6@loopback/64*0+ipv6@loopback/1408*0");
    }

    #[test]
    fn refuses_options_that_contradict_each_other() {
        let mechanism = Some(Factor::Mechanism);
        let levels = |levels: [&str; 2]| levels.map(str::to_owned).to_vec();
        for (request, why) in [
            (ExactRequest { rules: vec![1, 2, 3], ..udp() }, "one number, or two"),
            (ExactRequest { rules: vec![1, 2], factor: mechanism, ..udp() }, "leave out --factor"),
            (ExactRequest { family: Some(Family::Ipv4), ..udp() }, "--family is for arms of one family"),
            (ExactRequest { factor: mechanism, path: Some(ExactPath::Link), ..udp() }, "leave out --path"),
            (
                ExactRequest { factor: mechanism, levels: levels(["6in4", "4in6"]), ..udp() },
                "no family in common",
            ),
            (ExactRequest { factor: mechanism, levels: levels(["native", "x"]), ..udp() }, "--levels x: "),
            (ExactRequest { levels: vec!["ipv4".to_owned()], ..udp() }, "takes two"),
            (ExactRequest { factor: Some(Factor::Io), ..udp() }, "not io"),
        ] {
            let error = request.plan().unwrap_err();
            assert!(error.contains(why), "{request:?}: {error}");
        }
    }
}

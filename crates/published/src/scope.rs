//! The conditions of a finding.

use serde::Deserialize;
use stacklab_model::{Family, Mechanism, Transport};

/// The sizes of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// The study states no sizes, or uses the mean over sizes: all sizes together.
    Together,
    /// Each size alone.
    Every,
    /// Each size except one.
    EveryBut(u32),
    /// More than half of the sizes, each alone.
    Most,
    /// One size.
    Only(u32),
    /// Sizes below this one, together.
    Below(u32),
    /// Sizes from this one on, together.
    From(u32),
}

/// "Small sizes", if a study states no limit: less than this, in bytes.
const SMALL_BELOW: u32 = 512;
/// "Large sizes", if a study states no limit: this or more, in bytes.
const LARGE_FROM: u32 = 1024;

impl Sizes {
    /// Whether a size is in the scope.
    pub fn contains(self, size: u32) -> bool {
        match self {
            Sizes::Together | Sizes::Every | Sizes::Most => true,
            Sizes::EveryBut(but) => size != but,
            Sizes::Only(only) => size == only,
            Sizes::Below(least) => size < least,
            Sizes::From(least) => size >= least,
        }
    }

    /// Whether each size is judged alone.
    pub fn alone(self) -> bool {
        matches!(self, Sizes::Every | Sizes::EveryBut(_) | Sizes::Most)
    }
}

/// The systems of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Systems {
    /// The study states no systems.
    Unsaid,
    /// One system.
    Named(String),
    /// All of the study's systems.
    All,
    /// The mean of the study's systems.
    Mean,
    /// The finding compares the systems.
    Compared,
}

/// The conditions of a finding.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Scope {
    /// The conditions as written.
    pub text: String,
    /// The transports, each judged alone; empty if none is named.
    pub transports: Vec<Transport>,
    /// The family, if one is named.
    pub family: Option<Family>,
    /// Whether the finding must hold in each family alone.
    pub each_family: bool,
    /// The sizes.
    pub sizes: Sizes,
    /// The systems.
    pub systems: Systems,
    /// The tunnel, if the finding is about one.
    pub tunnel: Option<Mechanism>,
    /// The largest difference of the arms, in the metric's unit.
    pub within_points: Option<f64>,
}

impl TryFrom<String> for Scope {
    type Error = String;

    /// Reads the conditions, separated by `;`.
    fn try_from(text: String) -> Result<Self, String> {
        let mut scope = Scope {
            text: text.clone(),
            transports: Vec::new(),
            family: None,
            each_family: false,
            sizes: Sizes::Together,
            systems: Systems::Unsaid,
            tunnel: None,
            within_points: None,
        };
        for condition in text.split(';').map(str::trim).filter(|condition| !condition.is_empty()) {
            scope.add(condition)?;
        }
        Ok(scope)
    }
}

impl Scope {
    fn add(&mut self, condition: &str) -> Result<(), String> {
        let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u32>().ok());
        let behind = |words: &str| number(condition.strip_prefix(words));
        match condition {
            "tcp" | "udp" => self.transports = condition.parse().into_iter().collect(),
            "tcp and udp" => self.transports = vec![Transport::Tcp, Transport::Udp],
            "ipv4" | "ipv6" => self.family = condition.parse().ok(),
            "both families" => self.each_family = true,
            "mean over sizes" => self.sizes = Sizes::Together,
            "all sizes" => self.sizes = Sizes::Every,
            "most sizes" => self.sizes = Sizes::Most,
            "small sizes" => self.sizes = Sizes::Below(SMALL_BELOW),
            "large sizes" => self.sizes = Sizes::From(LARGE_FROM),
            "both systems" | "all systems" => self.systems = Systems::All,
            "mean of systems" => self.systems = Systems::Mean,
            "between systems" => self.systems = Systems::Compared,
            "RHES 5.5" | "Ubuntu 10.04" | "Ubuntu" => self.systems = Systems::Named(condition.to_owned()),
            "configured-tunnel" => self.tunnel = Some(Mechanism::SixInFour),
            // The metric already states it.
            "sender" => {}
            _ => {
                let points = condition.strip_prefix("within ").and_then(|rest| rest.strip_suffix(" points"));
                if let Some(points) = number(points) {
                    self.within_points = Some(f64::from(points));
                } else {
                    let sizes = behind("all sizes but").map(Sizes::EveryBut);
                    let sizes = sizes.or_else(|| behind("sizes below").map(Sizes::Below));
                    let sizes = sizes.or_else(|| behind("sizes from").map(Sizes::From));
                    let sizes = sizes.or_else(|| number(Some(condition)).map(Sizes::Only));
                    self.sizes = sizes.ok_or_else(|| format!("unknown condition `{condition}`"))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_one_by_one() {
        let read = |text: &str| Scope::try_from(text.to_owned());
        let scope = read("tcp; sizes below 896; mean of systems").unwrap();
        assert_eq!(scope.transports, [Transport::Tcp]);
        assert_eq!((scope.sizes, scope.systems), (Sizes::Below(896), Systems::Mean));
        let scope = read("udp; all sizes but 384").unwrap();
        assert_eq!(scope.sizes, Sizes::EveryBut(384));
        assert!(scope.sizes.alone() && !scope.sizes.contains(384) && scope.sizes.contains(128));
        assert_eq!(read("within 5 points").unwrap().within_points, Some(5.0));
        assert_eq!(read("tcp; tea").unwrap_err(), "unknown condition `tea`");
    }
}

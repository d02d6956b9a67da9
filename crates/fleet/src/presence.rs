//! An agent that answers, and whether it can be used.

use crate::store::{AgentInfo, BlockKey};
use serde::{Deserialize, Serialize};

/// An agent whose clock differs by more than this is not used: its runs would be dated wrongly.
const CLOCK_LIMIT_NS: u64 = 60_000_000_000;

/// An agent that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    /// The agent.
    pub agent: AgentInfo,
    /// Its clock, nanoseconds since the Unix epoch.
    pub now_ns: i64,
    /// The attempts that it takes part in.
    pub held: Vec<BlockKey>,
    /// The attempts whose results it keeps.
    pub kept: Vec<BlockKey>,
}

impl Presence {
    /// Why the agent cannot be used by a coordinator whose clock says this.
    pub fn unusable(&self, now_ns: i64) -> Option<String> {
        let AgentInfo { name, version, .. } = &self.agent;
        if let Err(error) = crate::name::check("an agent", name) {
            return Some(error.to_string());
        }
        let own = env!("CARGO_PKG_VERSION");
        if version != own {
            let version = stacklab_model::printable_lines(version);
            return Some(format!(
                "it is stacklab {version}, and this is {own}: install the same version on both"
            ));
        }
        let apart_ns = self.now_ns.abs_diff(now_ns);
        let apart = apart_ns / 1_000_000_000;
        let advice = "set both, for example with chrony or systemd-timesyncd";
        (apart_ns > CLOCK_LIMIT_NS).then(|| format!("its clock differs by {apart} s from this one: {advice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_of_another_version_or_time_is_not_used() {
        let agent = AgentInfo::new("a", &[], &[], &[]).unwrap();
        let at = |agent: &AgentInfo, ahead_ns: i64| {
            let presence = Presence { agent: agent.clone(), now_ns: ahead_ns, held: vec![], kept: vec![] };
            presence.unusable(0).unwrap_or_default()
        };
        assert_eq!(at(&agent, 0), "");
        for hour in [-3_600_000_000_000, 3_600_000_000_000] {
            assert!(at(&agent, hour).starts_with("its clock differs by 3"), "{}", at(&agent, hour));
        }
        let other = AgentInfo { version: "9.9.9\u{1b}[31m".to_owned(), ..agent.clone() };
        let reason = at(&other, 0);
        assert!(
            reason.contains("9.9.9") && reason.contains("same version") && !reason.contains('\u{1b}'),
            "{reason}"
        );
        let named = AgentInfo { name: "../a".to_owned(), ..agent };
        assert!(at(&named, 0).starts_with("`../a` cannot be the name of an agent"), "{}", at(&named, 0));
    }
}

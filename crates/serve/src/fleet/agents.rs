//! The agents of a campaign: who measures, who is alive, and who is lost.

use crate::ServeError;
use stacklab_fleet::store::{PairProgress, Store};
use stacklab_report::page::FleetAgent;
use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

/// Most lost agents that a sentence names.
const NAMED: usize = 5;
/// A failed attempt ends the time of both its agents, and who lives answers within this time, seconds.
const ANSWERS_S: i64 = 10;
/// The state of an agent that measures.
const MEASURES: &str = "measures";

/// The agents of these pairs, lost ones first, with a sentence about them.
pub(super) fn agents(
    store: &mut Store,
    pairs: &[PairProgress],
) -> Result<(String, Vec<FleetAgent>), ServeError> {
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64;
    let members: HashSet<&str> =
        pairs.iter().flat_map(|pair| [pair.sender.as_str(), pair.receiver.as_str()]).collect();
    // Who measures is not asked whether it lives.
    let taken = store.reservations()?;
    let busy: HashSet<&str> =
        taken.iter().filter_map(|(resource, ..)| resource.strip_prefix("agent ")).collect();
    let known = store.agents()?;
    let known = known.iter().filter(|(agent, _)| members.contains(agent.name.as_str()));
    let mut agents: Vec<FleetAgent> = known
        .map(|(agent, alive_until_ns)| {
            let is_busy = busy.contains(agent.name.as_str());
            let lost_s = now_ns.saturating_sub(*alive_until_ns) / 1_000_000_000;
            let is_lost = !is_busy && lost_s > ANSWERS_S;
            let labels = agent.labels.iter().map(|(key, value)| format!("{key}={value}"));
            FleetAgent {
                name: agent.name.clone(),
                labels: labels.collect::<Vec<_>>().join(" "),
                is_lost,
                state: match (is_busy, is_lost) {
                    (true, _) => MEASURES.to_owned(),
                    (_, true) => format!("lost for {lost_s} s"),
                    _ => "alive".to_owned(),
                },
            }
        })
        .collect();
    agents.sort_by_key(|agent| (!agent.is_lost, agent.state != MEASURES));
    Ok((summary(&agents), agents))
}

/// `12 agents: 8 measuring, 3 alive, 1 lost (a7)`.
fn summary(agents: &[FleetAgent]) -> String {
    let lost: Vec<&str> =
        agents.iter().filter(|agent| agent.is_lost).map(|agent| agent.name.as_str()).collect();
    let measuring = agents.iter().filter(|agent| agent.state == MEASURES).count();
    let alive = agents.len() - lost.len() - measuring;
    let names = match lost[..] {
        [] => String::new(),
        _ if lost.len() == agents.len() => {
            ": perhaps no coordinator runs; `stacklab fleet run --resume` continues".to_owned()
        }
        _ => {
            let more = if lost.len() > NAMED { ", .." } else { "" };
            format!(" ({}{more})", lost[..lost.len().min(NAMED)].join(", "))
        }
    };
    format!("{} agents: {measuring} measuring, {alive} alive, {} lost{names}", agents.len(), lost.len())
}

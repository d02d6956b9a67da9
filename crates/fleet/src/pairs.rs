//! Which agents are measured with which (`site=a -> site=b`), and in which order.

use crate::FleetError;
use crate::message::check_name;
use crate::store::{AgentInfo, Class, NewCampaign, NewPair};
use crate::study::FleetStudy;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use stacklab_study::Study;
use stacklab_traffic::host::files::read_text_file;
use stacklab_traffic::host::now_unix_ns;
use std::collections::BTreeSet;
use std::path::Path;

/// The pairs that are asked for; without any, every agent with every other one, in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs(Vec<[Selector; 2]>);

/// The labels that an agent must have: `site=a,os=linux`. Its name is a label, too.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Selector(Vec<(String, String)>);

impl Pairs {
    /// Reads pairs such as `site=a -> site=b`. A text without an arrow names a file with one such line per pair.
    pub fn parse(texts: &[String]) -> Result<Self, FleetError> {
        let mut pairs = Vec::new();
        for text in texts {
            if text.contains("->") {
                pairs.push(pair(text)?);
                continue;
            }
            let lines = read_text_file(Path::new(text)).map_err(|reason| {
                FleetError::Usage(format!(
                    "--pairs {text} is neither a pair, such as 'site=a -> site=b', nor a file with pairs: {reason}"
                ))
            })?;
            let lines = lines.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            for line in lines.filter(|line| !line.is_empty()) {
                pairs.push(pair(line)?);
            }
        }
        Ok(Pairs(pairs))
    }

    /// The pairs of these agents, sender first: each once, in the order of the agents.
    /// Fails if a side of a pair selects no agent, or nothing but the same agent.
    pub fn of<'a>(&self, agents: &'a [AgentInfo]) -> Result<Vec<[&'a AgentInfo; 2]>, FleetError> {
        if agents.len() < 2 {
            return Err(FleetError::Usage(format!(
                "a fleet needs two agents, and {} is known: start `stacklab fleet agent` on another host",
                if agents.is_empty() { "none" } else { agents[0].name.as_str() }
            )));
        }
        let all = [[Selector(Vec::new()), Selector(Vec::new())]];
        let asked: &[[Selector; 2]] = if self.0.is_empty() { &all } else { &self.0 };
        let mut seen = BTreeSet::new();
        let mut pairs = Vec::new();
        for [from, to] in asked {
            let [senders, receivers] = [from.agents(agents)?, to.agents(agents)?];
            let before = seen.len();
            for sender in &senders {
                for receiver in receivers.iter().filter(|receiver| receiver.name != sender.name) {
                    if seen.insert((&sender.name, &receiver.name)) {
                        pairs.push([*sender, *receiver]);
                    }
                }
            }
            if seen.len() == before && senders.len() == 1 && senders == receivers {
                let name = &senders[0].name;
                return Err(FleetError::Usage(format!(
                    "{name} cannot be measured with itself: name two agents"
                )));
            }
        }
        Ok(pairs)
    }
}

impl Selector {
    fn agents<'a>(&self, agents: &'a [AgentInfo]) -> Result<Vec<&'a AgentInfo>, FleetError> {
        let found: Vec<&AgentInfo> = agents.iter().filter(|agent| self.selects(agent)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let wanted: Vec<String> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let known: BTreeSet<_> = agents.iter().flat_map(|agent| &agent.labels).collect();
        let known: Vec<String> = known.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let wanted = wanted.join(",");
        Err(FleetError::Usage(format!("no agent has {wanted}; the agents' labels are {known}")))
    }

    fn selects(&self, agent: &AgentInfo) -> bool {
        for (key, value) in &self.0 {
            let label = if key == "name" { Some(&agent.name) } else { agent.labels.get(key) };
            if label != Some(value) {
                return false;
            }
        }
        true
    }
}

/// A label: `site=a`.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.trim().split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{}` is not a label, such as site=a", text.trim())),
    }
}

fn pair(text: &str) -> Result<[Selector; 2], FleetError> {
    let (from, to) = text
        .split_once("->")
        .ok_or_else(|| FleetError::Usage(format!("`{text}` is not a pair, such as 'site=a -> site=b'")))?;
    Ok([parse_selector(from)?, parse_selector(to)?])
}

fn parse_selector(text: &str) -> Result<Selector, FleetError> {
    let labels = text.split(',').filter(|part| !part.trim().is_empty()).map(label);
    Ok(Selector(labels.collect::<Result<_, _>>().map_err(FleetError::Usage)?))
}

/// A campaign of all these pairs: `blocks` blocks of each, each leased `most_attempts` times at most, in random order,
/// so that no pair has another time of day.
pub(crate) fn new_campaign(
    id: &str,
    study: &FleetStudy,
    class: Class,
    pairs: &Pairs,
    (blocks, most_attempts): (u32, u32),
    agents: &[AgentInfo],
) -> Result<NewCampaign, FleetError> {
    check_name("a campaign", id)?;
    let (checked, _) = study.check()?;
    let mut new_pairs = Vec::new();
    let mut measurable = Vec::new();
    for (number, [sender, receiver]) in (0..).zip(pairs.of(agents)?) {
        let skipped = find_missing_address(&checked, [sender, receiver]);
        if skipped.is_none() {
            measurable.push(number);
        }
        new_pairs.push(NewPair { sender: sender.clone(), receiver: receiver.clone(), skipped });
    }
    if measurable.is_empty() {
        let reason = new_pairs.iter().find_map(|pair| pair.skipped.as_deref()).unwrap_or("there is none");
        return Err(FleetError::Usage(format!("no pair can be measured; the first one: {reason}")));
    }
    let mut generator = Pcg64Mcg::seed_from_u64(study.seed);
    Ok(NewCampaign {
        id: id.to_owned(),
        created_ns: now_ns(),
        request: serde_json::to_string(study).expect("a study is JSON"),
        class,
        most_attempts,
        pairs: new_pairs,
        order: (0..blocks).flat_map(|_| shuffle_numbers(&measurable, &mut generator)).collect(),
    })
}

/// Why a pair cannot be measured: one of both has no address in a family of the study.
fn find_missing_address(study: &Study, pair: [&AgentInfo; 2]) -> Option<String> {
    for cell in &study.cells {
        for agent in pair {
            if let Err(error) = agent.address(cell.family) {
                return Some(error.to_string());
            }
        }
    }
    None
}

fn shuffle_numbers(numbers: &[u32], generator: &mut Pcg64Mcg) -> Vec<u32> {
    let mut numbers = numbers.to_vec();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, (generator.next_u64() % (last as u64 + 1)) as usize);
    }
    numbers
}

pub(crate) fn now_ns() -> i64 {
    i64::try_from(now_unix_ns()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn agents() -> Vec<AgentInfo> {
        let mut agents = Vec::new();
        for (name, site) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
            agents.push(AgentInfo {
                name: name.to_owned(),
                labels: BTreeMap::from([("site".to_owned(), site.to_owned())]),
                addresses: BTreeMap::new(),
                links: BTreeSet::new(),
                version: "0".to_owned(),
            });
        }
        agents
    }

    fn find_pairs(texts: &[&str]) -> Result<Vec<String>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let agents = agents();
        let pairs = Pairs::parse(&texts).and_then(|pairs| {
            let pairs = pairs.of(&agents)?;
            Ok(pairs.into_iter().map(|[from, to]| format!("{}-{}", from.name, to.name)).collect())
        });
        pairs.map_err(|error| error.to_string())
    }

    #[test]
    fn labels_select_both_sides() {
        assert_eq!(find_pairs(&["site=a -> site=b"]).unwrap(), ["a1-b1", "a2-b1"]);
        assert_eq!(find_pairs(&["name=b1->site=a", "site=b -> name=a1"]).unwrap(), ["b1-a1", "b1-a2"]);
        assert_eq!(find_pairs(&[]).unwrap().len(), 6);
        assert_eq!(find_pairs(&["-> site=b"]).unwrap(), ["a1-b1", "a2-b1"]);
    }

    #[test]
    fn wrong_pairs_are_answered_in_a_sentence() {
        for (text, expected) in [
            ("site=c -> site=a", "no agent has site=c; the agents' labels are site=a, site=b"),
            ("site -> site=a", "`site` is not a label, such as site=a"),
            ("name=b1 -> site=b", "b1 cannot be measured with itself: name two agents"),
            ("/no/such", "neither a pair"),
        ] {
            let error = find_pairs(&[text]).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_has_a_pair_per_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# ours\nsite=a -> site=b  # one way\n\nsite=b -> name=a2\n").unwrap();
        assert_eq!(find_pairs(&[file.path().to_str().unwrap()]).unwrap(), ["a1-b1", "a2-b1", "b1-a2"]);
    }

    #[test]
    fn every_pair_is_in_each_round_of_the_order_once() {
        let mut generator = Pcg64Mcg::seed_from_u64(5);
        let rounds: Vec<Vec<u32>> = (0..20).map(|_| shuffle_numbers(&[3, 4, 5, 6], &mut generator)).collect();
        assert!(rounds.iter().all(|round| round.iter().sum::<u32>() == 18 && round.len() == 4));
        assert!(rounds.iter().any(|round| *round != rounds[0]));
    }
}

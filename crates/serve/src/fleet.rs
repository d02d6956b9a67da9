//! The campaigns of a fleet store: how far they are, their verdicts, and their agents.
//!
//! The store is opened anew for each request, so that one that was away, or replaced, is read as soon as it is there.

use crate::ServeError;
use crate::cached::Cache;
use crate::to_json;
use serde::Deserialize;
pub use stacklab_fleet::FleetError;
use stacklab_fleet::results::over_pairs;
use stacklab_fleet::store::{
    BlockCounts, BlockKey, CampaignRow, CampaignState, ListedCampaign, PairProgress, Store,
};
use stacklab_fleet::study_of;
use stacklab_model::{FleetFindings, count};
use stacklab_report::page::{
    FleetAgent, FleetListing, FleetPage, FleetPairRow, FleetRow, MeasuredBlock, fleet_verdicts,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Most campaigns, pairs, blocks and agents that one answer lists.
const CAMPAIGNS: usize = 100;
const PAIRS: usize = 100;
const BLOCKS: usize = 200;
const AGENTS: usize = 200;
const KEPT: usize = 8;

#[derive(Debug, Deserialize)]
pub(super) struct FleetPart {
    pub name: String,
    /// How many pairs come before the listed ones.
    #[serde(default)]
    pub from: usize,
    /// Whether only pairs with a failure are listed.
    #[serde(default)]
    pub failed: bool,
}

/// What findings are made from: the campaign's creation, its number of results, and whether it has ended.
type Results = (i64, u32, bool);

pub(super) struct Fleet {
    address: String,
    place: String,
    titles: Cache<String, i64>,
    findings: Cache<Arc<FleetFindings>, Results>,
}

impl Fleet {
    pub(super) fn open(address: &str) -> Result<Self, ServeError> {
        let place = Store::open_to_read(address)?.place().to_owned();
        Ok(Fleet { address: address.to_owned(), place, titles: Cache::default(), findings: Cache::default() })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn listing(&self) -> Result<String, ServeError> {
        let all = Store::open_to_read(&self.address)?.campaigns()?;
        self.titles.retain(|name| all.iter().any(|one| one.row.id == name));
        Ok(to_json(&FleetListing {
            place: self.place.clone(),
            unlisted: all.len().saturating_sub(CAMPAIGNS),
            campaigns: all.iter().take(CAMPAIGNS).map(|one| self.row(one)).collect(),
        }))
    }

    /// A campaign, as JSON; `None` if there is none of that name.
    pub(super) fn campaign(&self, asked: &FleetPart) -> Result<Option<String>, ServeError> {
        let mut store = Store::open_to_read(&self.address)?;
        let Some(row) = store.campaign(Some(&asked.name))? else { return Ok(None) };
        let pairs = store.progress(&row.id)?;
        let blocks = BlockCounts::of(&pairs);
        let results: Results = (row.created_ns, blocks.done, blocks.is_over());
        let found = self.findings.get(&row.id, results, || over_pairs(&mut store, &row).map(Arc::new))?;
        self.findings.trim(KEPT);
        let wanted: Vec<&PairProgress> =
            pairs.iter().filter(|pair| !asked.failed || pair.failure().is_some()).collect();
        let from = asked.from.min(wanted.len().saturating_sub(1) / PAIRS * PAIRS);
        let until = wanted.len().min(from + PAIRS);
        let shown = &wanted[from..until];
        let names: Vec<String> = shown.iter().map(|pair| pair.name()).collect();
        let (verdicts, cells) =
            fleet_verdicts(&found.what, &names.iter().map(String::as_str).collect::<Vec<_>>());
        let listed = shown.iter().zip(names).zip(cells).map(|((pair, name), cells)| FleetPairRow {
            pair: pair.pair,
            name,
            done: pair.blocks.done,
            blocks: pair.blocks.sum(),
            failure: pair.failure(),
            cells,
        });
        let is_running = row.state == CampaignState::Running && !blocks.is_over();
        let measured = list_measured_blocks(&store.list_leases()?, &row, &pairs);
        let (agents_summary, mut agents) = match is_running || !measured.is_empty() {
            true => agents(&mut store, &pairs)?,
            false => Default::default(),
        };
        let unlisted_agents = agents.len().saturating_sub(AGENTS);
        agents.truncate(AGENTS);
        let campaign = ListedCampaign { row, pairs: pairs.len() as u32, blocks };
        Ok(Some(to_json(&FleetPage {
            campaign: self.row(&campaign),
            changes: is_running || !measured.is_empty() || found.stamp != results,
            verdicts,
            pairs: listed.collect(),
            part: format!("{} to {until} of {}", from + usize::from(until > 0), wanted.len()),
            before: (from > 0).then(|| from.saturating_sub(PAIRS)),
            after: (until < wanted.len()).then_some(until),
            failed: pairs.iter().filter(|pair| pair.failure().is_some()).count(),
            measured,
            agents_summary,
            agents,
            unlisted_agents,
        })))
    }

    fn row(&self, ListedCampaign { row, pairs, blocks }: &ListedCampaign) -> FleetRow {
        // The study may be of another version of stacklab.
        let title = self.titles.get(&row.id, row.created_ns, || {
            let read = study_of(row).and_then(|study| study.check());
            Ok::<_, ()>(read.map(|(study, _)| study.title).unwrap_or_default())
        });
        FleetRow {
            name: row.id.clone(),
            title: title.map(|made| made.what).unwrap_or_default(),
            state: row.state.name(blocks.is_over()).to_owned(),
            pairs: *pairs,
            progress: blocks.to_string(),
            started: stacklab_report::time(row.created_ns.unsigned_abs()),
        }
    }
}

fn list_measured_blocks(
    leased: &[(BlockKey, String)],
    campaign: &CampaignRow,
    pairs: &[PairProgress],
) -> Vec<MeasuredBlock> {
    let of = leased.iter().filter(|(key, _)| key.campaign == campaign.id).filter_map(|(key, sender)| {
        let receiver = pairs.iter().find(|pair| pair.pair == key.pair)?.receiver.clone();
        let BlockKey { pair, block, attempt, .. } = *key;
        Some(MeasuredBlock { pair, sender: sender.clone(), receiver, block, attempt })
    });
    of.take(BLOCKS).collect()
}

/// Most lost agents that a sentence names.
const NAMED: usize = 5;
/// A failed attempt ends the time of both its agents, and who lives answers within this time, seconds.
const ANSWERS_S: i64 = 10;
const MEASURES: &str = "measures";

/// The agents of these pairs, lost ones first, with a sentence about them.
fn agents(store: &mut Store, pairs: &[PairProgress]) -> Result<(String, Vec<FleetAgent>), ServeError> {
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64;
    let members: HashSet<&str> =
        pairs.iter().flat_map(|pair| [pair.sender.as_str(), pair.receiver.as_str()]).collect();
    // Who measures is not asked whether it lives.
    let taken = store.reservations()?;
    let busy: HashSet<&str> =
        taken.iter().filter_map(|(resource, ..)| resource.strip_prefix("agent ")).collect();
    let mut agents = Vec::new();
    for (agent, alive_until_ns) in store.agents()? {
        if !members.contains(agent.name.as_str()) {
            continue;
        }
        let is_busy = busy.contains(agent.name.as_str());
        let lost_s = now_ns.saturating_sub(alive_until_ns) / 1_000_000_000;
        let is_lost = !is_busy && lost_s > ANSWERS_S;
        let state = match (is_busy, is_lost) {
            (true, _) => MEASURES.to_owned(),
            (_, true) => format!("lost for {lost_s} s"),
            _ => "alive".to_owned(),
        };
        let labels: Vec<String> = agent.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        agents.push(FleetAgent { name: agent.name, labels: labels.join(" "), is_lost, state });
    }
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
    let all = count(agents.len(), "agent");
    format!("{all}: {measuring} measuring, {alive} alive, {} lost{names}", lost.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use stacklab_campaign::sources::StudySource;
    use stacklab_fleet::FleetStudy;
    use stacklab_fleet::store::{AgentInfo, Class, NewCampaign, NewPair};

    const FAR: i64 = i64::MAX;

    /// A store with a campaign `lab` of this many pairs, each with two blocks and two agents.
    fn store(pairs: usize) -> (tempfile::TempDir, Store, Fleet) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("fleet.db").display().to_string();
        assert!(Fleet::open(&place).is_err());
        let mut store = Store::open(&place).unwrap();
        let mut new_pairs = Vec::new();
        for number in 0..pairs {
            let sender = make_agent(&format!("a{number}"));
            let receiver = make_agent(&format!("b{number}"));
            new_pairs.push(NewPair { sender, receiver, skipped: None });
        }
        store.put_agents(new_pairs.iter().flat_map(|pair| [&pair.sender, &pair.receiver]), FAR).unwrap();
        let source = StudySource {
            name: "quickstart".to_owned(),
            text: include_str!("../../../studies/quickstart.toml").to_owned(),
        };
        let study = FleetStudy::new(source, None, vec![], 1, 2).unwrap();
        let order = (0..pairs as u32).flat_map(|pair| [pair, pair]).collect();
        let campaign = NewCampaign {
            id: "lab".to_owned(),
            created_ns: 1,
            request: serde_json::to_string(&study).unwrap(),
            class: Class::Exclusive,
            most_attempts: 2,
            pairs: new_pairs,
            order,
        };
        store.put_campaign(&campaign).unwrap();
        let fleet = Fleet::open(&place).unwrap();
        (folder, store, fleet)
    }

    fn make_agent(name: &str) -> AgentInfo {
        let agent = AgentInfo::new(name, &[("site".into(), "<x>".into())], &[], &[]).unwrap();
        AgentInfo { links: Default::default(), ..agent }
    }

    fn ask(fleet: &Fleet, from: usize, failed: bool) -> Value {
        let asked = FleetPart { name: "lab".to_owned(), from, failed };
        serde_json::from_str(&fleet.campaign(&asked).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn many_pairs_come_in_parts() {
        let (_folder, _store, fleet) = store(250);
        let first = ask(&fleet, 0, false);
        assert_eq!((&first["part"], &first["after"]), (&"1 to 100 of 250".into(), &100.into()));
        assert!(first["before"].is_null());
        assert_eq!(first["pairs"].as_array().unwrap().len(), 100);
        assert_eq!(first["pairs"][0]["name"], "a0 -> b0");
        assert_eq!(first["pairs"][99]["name"], "a99 -> b99");
        for from in [200, 9999] {
            let last = ask(&fleet, from, false);
            assert_eq!((&last["part"], &last["before"]), (&"201 to 250 of 250".into(), &100.into()));
            assert!(last["after"].is_null());
            assert_eq!(last["pairs"].as_array().unwrap().len(), 50);
            assert_eq!(last["pairs"][0]["name"], "a200 -> b200");
            assert_eq!(last["pairs"][49]["name"], "a249 -> b249");
        }
        assert_eq!(ask(&fleet, 0, false)["agents"].as_array().unwrap().len(), AGENTS);
        assert_eq!(ask(&fleet, 0, false)["unlisted_agents"], 300);
    }

    #[test]
    fn it_says_who_measures_who_is_lost_and_what_failed() {
        let (_folder, mut store, fleet) = store(3);
        let lease = store.reserve("lab", 0, FAR).unwrap().unwrap();
        let failed = store.reserve("lab", 0, FAR).unwrap().unwrap();
        store.fail(&failed.key, 0, "<b>no route</b>").unwrap();
        // Who measures is not asked, and so its time runs out.
        store.keep_alive(&["a0", "a1"], 1).unwrap();
        let page = ask(&fleet, 0, false);
        assert_eq!(page["agents_summary"], "6 agents: 2 measuring, 3 alive, 1 lost (a1)");
        assert_eq!(page["agents"][0]["name"], "a1");
        assert!(page["agents"][0]["state"].as_str().unwrap().starts_with("lost "), "{page}");
        assert_eq!(
            page["measured"],
            serde_json::json!([
                {"pair": lease.key.pair, "sender": lease.sender, "receiver": lease.receiver, "block": 0, "attempt": 1}
            ])
        );
        assert_eq!(
            page["campaign"]["progress"],
            "0 blocks with a result, 1 being measured, 5 waiting, 0 given up"
        );
        assert_eq!((&page["campaign"]["state"], &page["changes"]), (&"running".into(), &true.into()));
        assert_eq!(page["verdicts"]["answer"], "No pair of hosts has findings yet.");
        let only = ask(&fleet, 0, true);
        assert_eq!((only["pairs"].as_array().unwrap().len(), &only["failed"]), (1, &1.into()));
        assert_eq!(only["pairs"][0]["failure"], "<b>no route</b>");
        store.fail(&lease.key, 0, "gone").unwrap();
        store.keep_alive(&["a0", "a1", "a2", "b0", "b1", "b2"], 1).unwrap();
        let summary = ask(&fleet, 0, false)["agents_summary"].to_string();
        assert!(summary.contains("0 alive, 6 lost: perhaps no coordinator runs"), "{summary}");
        store.set_state("lab", CampaignState::Stopped).unwrap();
        let page = ask(&fleet, 0, false);
        assert_eq!((&page["campaign"]["state"], &page["changes"]), (&"stopped".into(), &false.into()));
        assert_eq!(page["agents"], serde_json::json!([]), "nobody follows them");
    }

    #[test]
    fn a_store_that_is_away_is_an_error_until_it_is_back() {
        let (folder, _store, fleet) = store(1);
        let here = folder.path().join("fleet.db");
        let away = folder.path().join("away");
        std::fs::rename(&here, &away).unwrap();
        let error = fleet.listing().unwrap_err().to_string();
        assert!(error.contains("fleet.db") && error.contains("unable to open"), "{error}");
        std::fs::rename(&away, &here).unwrap();
        let listing: Value = serde_json::from_str(&fleet.listing().unwrap()).unwrap();
        assert_eq!(
            (&listing["campaigns"][0]["name"], &listing["campaigns"][0]["pairs"]),
            (&"lab".into(), &1.into())
        );
        let other = FleetPart { name: "other".to_owned(), from: 0, failed: false };
        assert!(fleet.campaign(&other).unwrap().is_none());
    }
}

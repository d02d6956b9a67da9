//! The agents of a fleet in the store.

use crate::FleetError;
use crate::message::check_name;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, ScopedAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An agent as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Its name, unique in the fleet.
    pub name: String,
    /// Its labels, such as `site` = `a`.
    pub labels: BTreeMap<String, String>,
    /// Its address in each family (`ipv4`, `ipv6`), as other agents reach it.
    pub addresses: BTreeMap<String, String>,
    /// The links that it shares with other agents: one exclusive block at a time crosses each.
    pub links: BTreeSet<String>,
    /// Its version of stacklab.
    pub version: String,
}

impl AgentInfo {
    /// An agent of this version. Without an address it is reached over the loopback interface, which it shares with all
    /// others on its machine.
    /// Fails if two addresses are of one family, or the name has other characters than letters, digits, - and _.
    pub fn new(
        name: &str,
        labels: &[(String, String)],
        addresses: &[IpAddr],
        links: &[String],
    ) -> Result<Self, FleetError> {
        check_name("an agent", name)?;
        let mut links: BTreeSet<String> = links.iter().cloned().collect();
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        if addresses.is_empty() {
            links.insert("loopback".to_owned());
        }
        let mut known = BTreeMap::new();
        for address in if addresses.is_empty() { &loopback } else { addresses } {
            let family = Family::of(*address);
            if let Some(other) = known.insert(family.name().to_owned(), address.to_string()) {
                return Err(FleetError::Usage(format!(
                    "{other} and {address} are both {family} addresses: name one of each family"
                )));
            }
        }
        Ok(AgentInfo {
            name: name.to_owned(),
            labels: labels.iter().cloned().collect(),
            addresses: known,
            links,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// Its address in a family. Fails if it has none, or something else in its place.
    pub(crate) fn address(&self, family: Family) -> Result<ScopedAddr, FleetError> {
        let Some(text) = self.addresses.get(family.name()) else {
            let reason = format!("it has no {family} address: name one with --address");
            return Err(FleetError::agent(&self.name, reason));
        };
        match text.parse::<IpAddr>() {
            Ok(address) if Family::of(address) == family => Ok(ScopedAddr::from(address)),
            _ => Err(FleetError::agent(&self.name, format!("`{text}` is not an {family} address"))),
        }
    }
}

impl Store {
    /// Adds agents, or replaces what is known about them. They count as alive until `alive_until_ns`.
    pub fn put_agents<'a>(
        &mut self,
        agents: impl IntoIterator<Item = &'a AgentInfo>,
        alive_until_ns: i64,
    ) -> Result<(), FleetError> {
        self.transaction("store agents", |tx| {
            for agent in agents {
                let facts = serde_json::to_string(agent)?;
                for resource in resources(agent) {
                    let insert = "INSERT INTO resource VALUES ($1) ON CONFLICT DO NOTHING";
                    tx.execute(insert, &[(&resource).into()])?;
                }
                tx.execute(
                    "INSERT INTO agent VALUES ($1, $2, $3)
                     ON CONFLICT (name) DO UPDATE SET facts = excluded.facts, alive_until_ns = excluded.alive_until_ns",
                    &[(&agent.name).into(), (&facts).into(), alive_until_ns.into()],
                )?;
            }
            Ok(())
        })
    }

    /// An agent by name.
    pub fn agent(&mut self, name: &str) -> Result<Option<AgentInfo>, FleetError> {
        self.transaction("read an agent", |tx| {
            let row = tx.row("SELECT facts FROM agent WHERE name = $1", &[name.into()])?;
            row.map(|row| Ok(serde_json::from_str(&row.text(0)?)?)).transpose()
        })
    }

    /// Until when these agents are known to live.
    pub fn keep_alive(&mut self, agents: &[&str], until_ns: i64) -> Result<(), FleetError> {
        self.transaction("store until when agents live", |tx| {
            for agent in agents {
                let values = [until_ns.into(), (*agent).into()];
                tx.execute("UPDATE agent SET alive_until_ns = $1 WHERE name = $2", &values)?;
            }
            Ok(())
        })
    }

    /// Every agent by name, and until when it is known to live.
    pub fn agents(&mut self) -> Result<Vec<(AgentInfo, i64)>, FleetError> {
        self.transaction("read the agents", |tx| {
            let rows = tx.rows("SELECT facts, alive_until_ns FROM agent ORDER BY name", &[])?;
            rows.iter().map(|row| Ok((serde_json::from_str(&row.text(0)?)?, row.int(1)?))).collect()
        })
    }
}

/// What a block on this agent takes: the agent, and its shared links.
pub(super) fn resources(agent: &AgentInfo) -> BTreeSet<String> {
    let links = agent.links.iter().map(|link| format!("link {link}"));
    links.chain([format!("agent {}", agent.name)]).collect()
}

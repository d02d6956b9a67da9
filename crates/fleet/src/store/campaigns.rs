//! Campaigns and their blocks in the store.

use crate::store::agents::resources;
use crate::store::db::{DbError, Row};
use crate::store::leases::Class;
use crate::store::{AgentInfo, Store};
use crate::{FleetError, name};

/// A campaign to add.
#[derive(Debug, Clone)]
pub struct NewCampaign {
    /// Its name, unique in the store.
    pub id: String,
    /// When it was created, nanoseconds since the Unix epoch.
    pub created_ns: i64,
    /// What agents need to run its blocks, in JSON.
    pub request: String,
    /// The class of its blocks.
    pub class: Class,
    /// How often a block is leased before it is given up.
    pub most_attempts: u32,
    /// Its pairs, by number.
    pub pairs: Vec<NewPair>,
    /// The pair of each block to measure, in the order of the campaign. A pair's blocks are numbered in this order.
    pub order: Vec<u32>,
}

/// A pair of agents.
#[derive(Debug, Clone)]
pub struct NewPair {
    /// The sender.
    pub sender: AgentInfo,
    /// The receiver.
    pub receiver: AgentInfo,
    /// Why it is not measured.
    pub skipped: Option<String>,
}

/// Whether the blocks of a campaign are still handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// They are.
    Running,
    /// It was stopped.
    Stopped,
}

/// A campaign in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignRow {
    /// Its name.
    pub id: String,
    /// When it was created, nanoseconds since the Unix epoch.
    pub created_ns: i64,
    /// What agents need to run its blocks, in JSON.
    pub request: String,
    /// The class of its blocks.
    pub class: Class,
    /// Whether it was stopped.
    pub state: State,
}

/// How far a pair is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairProgress {
    /// Its number in the campaign.
    pub pair: u32,
    /// The sender's name.
    pub sender: String,
    /// The receiver's name.
    pub receiver: String,
    /// Why it is not measured.
    pub skipped: Option<String>,
    /// Blocks that wait for a lease.
    pub waiting: u32,
    /// Blocks that are being measured.
    pub leased: u32,
    /// Blocks with a result.
    pub done: u32,
    /// Blocks that failed too often.
    pub given_up: u32,
    /// The reason of the last failure.
    pub reason: Option<String>,
}

impl PairProgress {
    /// Its name: `sender -> receiver`.
    pub fn name(&self) -> String {
        format!("{} -> {}", self.sender, self.receiver)
    }

    /// Whether nothing is left to measure.
    pub fn has_ended(&self) -> bool {
        self.skipped.is_some() || self.waiting + self.leased == 0
    }

    /// Whether every block has a result.
    pub fn is_whole(&self) -> bool {
        self.done > 0 && self.waiting + self.leased + self.given_up == 0
    }
}

impl Store {
    /// Adds a campaign with its pairs and blocks, all in one transaction.
    pub fn put_campaign(&mut self, campaign: &NewCampaign) -> Result<(), FleetError> {
        let id = || campaign.id.as_str().into();
        self.transaction("store a campaign", |tx| {
            tx.execute(
                "INSERT INTO campaign VALUES ($1, $2, $3, $4, $5, 'running')",
                &[
                    id(),
                    campaign.created_ns.into(),
                    campaign.request.as_str().into(),
                    campaign.class.name().into(),
                    campaign.most_attempts.into(),
                ],
            )?;
            for (number, pair) in (0_u32..).zip(&campaign.pairs) {
                let (sender, receiver) = (&pair.sender, &pair.receiver);
                tx.execute(
                    "INSERT INTO pair VALUES ($1, $2, $3, $4, $5)",
                    &[
                        id(),
                        number.into(),
                        sender.name.as_str().into(),
                        receiver.name.as_str().into(),
                        pair.skipped.as_deref().into(),
                    ],
                )?;
                let mut taken = resources(sender);
                taken.extend(resources(receiver));
                for resource in taken {
                    let values = [id(), number.into(), resource.as_str().into()];
                    tx.execute("INSERT INTO pair_resource VALUES ($1, $2, $3)", &values)?;
                }
            }
            let mut next = vec![0_u32; campaign.pairs.len()];
            for (place, pair) in (0_u32..).zip(&campaign.order) {
                let block = &mut next[*pair as usize];
                let values = [id(), (*pair).into(), (*block).into(), place.into()];
                tx.execute("INSERT INTO block VALUES ($1, $2, $3, $4, 'waiting', 0, NULL)", &values)?;
                *block += 1;
            }
            Ok(())
        })
    }

    /// A campaign by name, or the newest one.
    pub fn campaign(&mut self, id: Option<&str>) -> Result<Option<CampaignRow>, FleetError> {
        let found = self.transaction("read a campaign", |tx| {
            let row = tx.row(
                "SELECT id, created_ns, request, state, class FROM campaign
                 WHERE CAST($1 AS TEXT) IS NULL OR id = $1 ORDER BY created_ns DESC, id DESC LIMIT 1",
                &[id.into()],
            )?;
            row.as_ref().map(campaign_of).transpose()
        })?;
        // Files are named after it, and the store may be somebody else's.
        found.iter().try_for_each(|row| name::check("a campaign", &row.id))?;
        Ok(found)
    }

    /// Hands out no more blocks of a campaign, or hands them out again.
    pub fn set_state(&mut self, campaign: &str, state: State) -> Result<(), FleetError> {
        let state = if state == State::Running { "running" } else { "stopped" };
        self.transaction("stop a campaign", |tx| {
            tx.execute("UPDATE campaign SET state = $1 WHERE id = $2", &[state.into(), campaign.into()])?;
            Ok(())
        })
    }

    /// Whether every block of a campaign has a result, or was given up.
    pub fn has_ended(&mut self, campaign: &str) -> Result<bool, FleetError> {
        self.transaction("look for blocks", |tx| {
            let row = tx.row(
                "SELECT b.block FROM block b JOIN pair p ON p.campaign = b.campaign AND p.pair = b.pair
                 WHERE b.campaign = $1 AND b.state IN ('waiting', 'leased') AND p.skipped IS NULL LIMIT 1",
                &[campaign.into()],
            )?;
            Ok(row.is_none())
        })
    }

    /// Leaves out a pair that cannot be measured.
    pub fn skip_pair(&mut self, campaign: &str, pair: u32, reason: &str) -> Result<(), FleetError> {
        self.transaction("leave out a pair", |tx| {
            let values = [reason.into(), campaign.into(), pair.into()];
            tx.execute("UPDATE pair SET skipped = $1 WHERE campaign = $2 AND pair = $3", &values)?;
            Ok(())
        })
    }

    /// How far each pair of a campaign is.
    pub fn progress(&mut self, campaign: &str) -> Result<Vec<PairProgress>, FleetError> {
        self.transaction("read the progress of a campaign", |tx| {
            let rows = tx.rows(
                // Counted before it is joined: SQLite reads all blocks of the campaign for each pair otherwise.
                "SELECT p.pair, p.sender, p.receiver, p.skipped, b.state, b.blocks, b.reason
                 FROM pair p LEFT JOIN (
                     SELECT pair, state, count(*) AS blocks, max(reason) AS reason FROM block
                     WHERE campaign = $1 GROUP BY pair, state) b ON b.pair = p.pair
                 WHERE p.campaign = $1 ORDER BY p.pair",
                &[campaign.into()],
            )?;
            let mut pairs: Vec<PairProgress> = Vec::new();
            for row in rows {
                let pair = row.number(0)?;
                if pairs.last().is_none_or(|last| last.pair != pair) {
                    pairs.push(PairProgress {
                        pair,
                        sender: row.text(1)?,
                        receiver: row.text(2)?,
                        skipped: row.maybe_text(3)?,
                        waiting: 0,
                        leased: 0,
                        done: 0,
                        given_up: 0,
                        reason: None,
                    });
                }
                let Some(last) = pairs.last_mut() else { continue };
                // A pair without blocks has no state.
                let Some(state) = row.maybe_text(4)? else { continue };
                let count = row.number(5)?;
                match state.as_str() {
                    "waiting" => last.waiting = count,
                    "leased" => last.leased = count,
                    "done" => last.done = count,
                    "given_up" => last.given_up = count,
                    _ => {}
                }
                last.reason = last.reason.take().or(row.maybe_text(6)?);
            }
            Ok(pairs)
        })
    }
}

/// A campaign from its id, creation, request, state and class.
pub(super) fn campaign_of(row: &Row) -> Result<CampaignRow, DbError> {
    let state = if row.text(3)? == "running" { State::Running } else { State::Stopped };
    let class = row.text(4)?;
    let class = Class::ALL.into_iter().find(|one| one.name() == class).ok_or("its class is unknown")?;
    let (id, created_ns, request) = (row.text(0)?, row.int(1)?, row.text(2)?);
    Ok(CampaignRow { id, created_ns, request, class, state })
}

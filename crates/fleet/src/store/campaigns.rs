//! Campaigns, their pairs and their blocks in the store.

use crate::FleetError;
use crate::message::check_name;
use crate::store::agents::resources;
use crate::store::db::{DbError, Row, Tx};
use crate::store::{AgentInfo, Class, Store};
use stacklab_model::count;
use std::fmt;

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
pub enum CampaignState {
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
    pub state: CampaignState,
}

impl CampaignState {
    /// `running`, `ended` or `stopped`.
    pub fn name(self, has_ended: bool) -> &'static str {
        match self {
            CampaignState::Running if has_ended => "ended",
            CampaignState::Running => "running",
            CampaignState::Stopped => "stopped",
        }
    }
}

/// How many blocks are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// With a result.
    pub done: u32,
    /// Being measured.
    pub leased: u32,
    /// That wait for a lease.
    pub waiting: u32,
    /// That failed too often.
    pub given_up: u32,
}

impl BlockCounts {
    /// The blocks of these pairs. Those of pairs that are left out wait for nothing, and are not counted.
    pub fn of(pairs: &[PairProgress]) -> Self {
        let mut counts = BlockCounts::default();
        for PairProgress { blocks, skipped, .. } in pairs {
            counts.done += blocks.done;
            counts.leased += blocks.leased;
            counts.waiting += if skipped.is_none() { blocks.waiting } else { 0 };
            counts.given_up += blocks.given_up;
        }
        counts
    }

    /// All of them.
    pub fn sum(self) -> u32 {
        self.done + self.leased + self.waiting + self.given_up
    }

    /// Whether nothing is left to measure.
    pub fn is_over(self) -> bool {
        self.leased + self.waiting == 0
    }
}

impl fmt::Display for BlockCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockCounts { done, leased, waiting, given_up } = self;
        write!(
            f,
            "{} with a result, {leased} being measured, {waiting} waiting, {given_up} given up",
            count(*done as usize, "block")
        )
    }
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
    /// Its blocks.
    pub blocks: BlockCounts,
    /// The reason of a failure.
    pub reason: Option<String>,
}

impl PairProgress {
    /// Its name: `sender -> receiver`.
    pub fn name(&self) -> String {
        format!("{} -> {}", self.sender, self.receiver)
    }

    /// Whether nothing is left to measure.
    pub fn is_over(&self) -> bool {
        self.skipped.is_some() || self.blocks.is_over()
    }

    /// Whether every block has a result.
    pub fn is_whole(&self) -> bool {
        self.blocks.done > 0 && self.blocks.done == self.blocks.sum()
    }

    /// Why it is left out, or an attempt failed.
    pub fn failure(&self) -> Option<String> {
        self.skipped.as_ref().map(|reason| format!("left out: {reason}")).or_else(|| self.reason.clone())
    }
}

/// A campaign in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCampaign {
    /// The campaign.
    pub row: CampaignRow,
    /// Number of its pairs.
    pub pairs: u32,
    /// Its blocks.
    pub blocks: BlockCounts,
}

impl Store {
    /// Adds a campaign with its pairs and blocks, all in one transaction.
    pub fn put_campaign(&mut self, campaign: &NewCampaign) -> Result<(), FleetError> {
        let id = || (&campaign.id).into();
        self.transaction("store a campaign", |tx| {
            tx.execute(
                "INSERT INTO campaign VALUES ($1, $2, $3, $4, $5, 'running')",
                &[
                    id(),
                    campaign.created_ns.into(),
                    (&campaign.request).into(),
                    campaign.class.name().into(),
                    campaign.most_attempts.into(),
                ],
            )?;
            for (number, pair) in (0_u32..).zip(&campaign.pairs) {
                let NewPair { sender, receiver, skipped } = pair;
                let [from, to] = [(&sender.name).into(), (&receiver.name).into()];
                let values = [id(), number.into(), from, to, skipped.as_ref().into()];
                tx.execute("INSERT INTO pair VALUES ($1, $2, $3, $4, $5)", &values)?;
                for resource in &resources(sender) | &resources(receiver) {
                    let values = [id(), number.into(), (&resource).into()];
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
        found.iter().try_for_each(|row| check_name("a campaign", &row.id))?;
        Ok(found)
    }

    /// Hands out no more blocks of a campaign, or hands them out again.
    pub fn set_state(&mut self, campaign: &str, state: CampaignState) -> Result<(), FleetError> {
        let state = if state == CampaignState::Running { "running" } else { "stopped" };
        self.transaction("stop a campaign", |tx| {
            tx.execute("UPDATE campaign SET state = $1 WHERE id = $2", &[state.into(), campaign.into()])
        })
    }

    /// Whether every block of a campaign has a result, or was given up.
    pub fn is_over(&mut self, campaign: &str) -> Result<bool, FleetError> {
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
            tx.execute("UPDATE pair SET skipped = $1 WHERE campaign = $2 AND pair = $3", &values)
        })
    }

    /// How far each pair of a campaign is.
    pub fn progress(&mut self, campaign: &str) -> Result<Vec<PairProgress>, FleetError> {
        self.transaction("read the progress of a campaign", |tx| pairs_of(tx, campaign))
    }

    /// Every campaign, the newest first.
    pub fn campaigns(&mut self) -> Result<Vec<ListedCampaign>, FleetError> {
        self.transaction("read the campaigns", |tx| {
            let rows = tx.rows(
                "SELECT id, created_ns, request, state, class FROM campaign ORDER BY created_ns DESC, id DESC",
                &[],
            )?;
            let mut campaigns = Vec::new();
            for row in &rows {
                let row = campaign_of(row)?;
                let pairs = pairs_of(tx, &row.id)?;
                let blocks = BlockCounts::of(&pairs);
                campaigns.push(ListedCampaign { row, pairs: pairs.len() as u32, blocks });
            }
            Ok(campaigns)
        })
    }
}

/// A campaign from its id, creation, request, state and class.
fn campaign_of(row: &Row) -> Result<CampaignRow, DbError> {
    Ok(CampaignRow {
        id: row.text(0)?,
        created_ns: row.int(1)?,
        request: row.text(2)?,
        class: row.text(4)?.parse()?,
        state: if row.text(3)? == "running" { CampaignState::Running } else { CampaignState::Stopped },
    })
}

fn pairs_of(tx: &mut Tx<'_>, campaign: &str) -> Result<Vec<PairProgress>, DbError> {
    let rows = tx.rows(
        // Counted before it is joined: SQLite reads all blocks of the campaign for each pair otherwise.
        "SELECT p.pair, p.sender, p.receiver, p.skipped, coalesce(b.done, 0), coalesce(b.leased, 0),
             coalesce(b.waiting, 0), coalesce(b.given_up, 0), b.reason
         FROM pair p LEFT JOIN (
             SELECT pair, count(*) FILTER (WHERE state = 'done') AS done,
                 count(*) FILTER (WHERE state = 'leased') AS leased,
                 count(*) FILTER (WHERE state = 'waiting') AS waiting,
                 count(*) FILTER (WHERE state = 'given_up') AS given_up, max(reason) AS reason
             FROM block WHERE campaign = $1 GROUP BY pair) b ON b.pair = p.pair
         WHERE p.campaign = $1 ORDER BY p.pair",
        &[campaign.into()],
    )?;
    rows.iter().map(read_progress).collect()
}

fn read_progress(row: &Row) -> Result<PairProgress, DbError> {
    Ok(PairProgress {
        pair: row.number(0)?,
        sender: row.text(1)?,
        receiver: row.text(2)?,
        skipped: row.maybe_text(3)?,
        blocks: BlockCounts {
            done: row.number(4)?,
            leased: row.number(5)?,
            waiting: row.number(6)?,
            given_up: row.number(7)?,
        },
        reason: row.maybe_text(8)?,
    })
}

//! How far campaigns are, in a few numbers.

use crate::FleetError;
use crate::store::campaigns::campaign_of;
use crate::store::{CampaignRow, PairProgress, State, Store};
use std::collections::BTreeMap;
use std::fmt;

/// The blocks of a campaign. Those of pairs that are left out wait for nothing, and are not counted.
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
    /// The blocks of these pairs.
    pub fn of(pairs: &[PairProgress]) -> Self {
        let mut counts = BlockCounts::default();
        for pair in pairs {
            counts.done += pair.done;
            counts.leased += pair.leased;
            counts.waiting += if pair.skipped.is_none() { pair.waiting } else { 0 };
            counts.given_up += pair.given_up;
        }
        counts
    }

    /// Whether nothing is left to measure.
    pub fn has_ended(self) -> bool {
        self.leased + self.waiting == 0
    }
}

impl fmt::Display for BlockCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockCounts { done, leased, waiting, given_up } = self;
        write!(
            f,
            "{done} blocks with a result, {leased} being measured, {waiting} waiting, {given_up} given up"
        )
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

/// `running`, `ended` or `stopped`.
pub fn state_name(state: State, has_ended: bool) -> &'static str {
    match state {
        State::Running if has_ended => "ended",
        State::Running => "running",
        State::Stopped => "stopped",
    }
}

impl Store {
    /// Every campaign, the newest first.
    pub fn campaigns(&mut self) -> Result<Vec<ListedCampaign>, FleetError> {
        self.transaction("read the campaigns", |tx| {
            let mut counts: BTreeMap<String, (u32, BlockCounts)> = BTreeMap::new();
            for row in tx.rows("SELECT campaign, count(*) FROM pair GROUP BY campaign", &[])? {
                counts.insert(row.text(0)?, (row.number(1)?, BlockCounts::default()));
            }
            let rows = tx.rows(
                "SELECT b.campaign, b.state, count(*)
                 FROM block b JOIN pair p ON p.campaign = b.campaign AND p.pair = b.pair
                 WHERE p.skipped IS NULL OR b.state <> 'waiting' GROUP BY b.campaign, b.state",
                &[],
            )?;
            for row in rows {
                let (_, blocks) = counts.entry(row.text(0)?).or_default();
                let count = match row.text(1)?.as_str() {
                    "waiting" => &mut blocks.waiting,
                    "leased" => &mut blocks.leased,
                    "done" => &mut blocks.done,
                    _ => &mut blocks.given_up,
                };
                *count = row.number(2)?;
            }
            let rows = tx.rows(
                "SELECT id, created_ns, request, state, class FROM campaign ORDER BY created_ns DESC, id DESC",
                &[],
            )?;
            let campaign = |row| {
                let row = campaign_of(row)?;
                let (pairs, blocks) = counts.get(&row.id).copied().unwrap_or_default();
                Ok(ListedCampaign { row, pairs, blocks })
            };
            rows.iter().map(campaign).collect()
        })
    }
}

//! Leases of blocks, and their results.

use crate::FleetError;
use crate::store::Store;
use crate::store::db::{DbError, Row, Tx, Value};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What may run beside a block, as in pScheduler: an exclusive one beside background ones only, a normal one beside all
/// but exclusive ones, and a background one beside everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Alone on its agents and links, but for background blocks.
    Exclusive,
    /// Not beside exclusive blocks.
    Normal,
    /// Beside everything.
    Background,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 3] = [Class::Exclusive, Class::Normal, Class::Background];

    /// Its name in the store.
    pub fn name(self) -> &'static str {
        match self {
            Class::Exclusive => "exclusive",
            Class::Normal => "normal",
            Class::Background => "background",
        }
    }

    /// Whether blocks of both classes may run on one agent at the same time.
    pub fn runs_beside(self, other: Class) -> bool {
        match (self, other) {
            (Class::Background, _) | (_, Class::Background) => true,
            (Class::Exclusive, _) | (_, Class::Exclusive) => false,
            (Class::Normal, Class::Normal) => true,
        }
    }
}

impl std::str::FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Class::ALL.into_iter().find(|class| class.name() == text);
        found.ok_or_else(|| format!("`{text}` is not exclusive, normal or background"))
    }
}

/// One attempt to measure one block.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockKey {
    /// The campaign.
    pub campaign: String,
    /// The pair's number.
    pub pair: u32,
    /// The block's number within the pair, from 0.
    pub block: u32,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl BlockKey {
    fn block_values(&self) -> [Value; 3] {
        [(&self.campaign).into(), self.pair.into(), self.block.into()]
    }

    fn values(&self) -> [Value; 4] {
        let [campaign, pair, block] = self.block_values();
        [campaign, pair, block, self.attempt.into()]
    }
}

impl fmt::Display for BlockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockKey { campaign, pair, block, attempt } = self;
        write!(f, "{campaign}, pair {pair}, block {block}, attempt {attempt}")
    }
}

/// A block that is reserved for its two agents until a deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The attempt.
    pub key: BlockKey,
    /// The sender's name.
    pub sender: String,
    /// The receiver's name.
    pub receiver: String,
    /// When it expires, nanoseconds since the Unix epoch.
    pub deadline_ns: i64,
}

/// What the store did with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It counts.
    Counted,
    /// It was already there.
    Duplicate,
    /// Another attempt's result counts.
    Late,
}

impl Store {
    /// Reserves the next block whose agents live and are free, with the links that they share: all or none. `None` if
    /// no block is free now.
    pub fn reserve(
        &mut self,
        campaign: &str,
        now_ns: i64,
        lease_ns: i64,
    ) -> Result<Option<Lease>, FleetError> {
        let deadline_ns = now_ns.saturating_add(lease_ns);
        self.transaction("reserve a block", |tx| {
            let running = "SELECT class FROM campaign WHERE id = $1 AND state = 'running'";
            let Some(row) = tx.row(running, &[campaign.into()])? else { return Ok(None) };
            let class = row.text(0)?;
            let next = tx.row(
                "SELECT b.pair, b.block, b.attempts, p.sender, p.receiver
                 FROM block b JOIN pair p ON p.campaign = b.campaign AND p.pair = b.pair
                     JOIN agent s ON s.name = p.sender JOIN agent r ON r.name = p.receiver
                 WHERE b.campaign = $1 AND b.state = 'waiting' AND p.skipped IS NULL
                     AND s.alive_until_ns >= $2 AND r.alive_until_ns >= $2
                     AND NOT EXISTS (
                         SELECT 1 FROM pair_resource n
                             JOIN reservation o ON o.resource = n.resource AND o.released_ns IS NULL
                         WHERE n.campaign = b.campaign AND n.pair = b.pair
                             AND (o.class = 'exclusive' AND CAST($3 AS TEXT) <> 'background'
                                 OR o.class = 'normal' AND CAST($3 AS TEXT) = 'exclusive'))
                 ORDER BY b.place LIMIT 1 {FOR UPDATE OF b SKIP LOCKED}",
                &[campaign.into(), now_ns.into(), (&class).into()],
            )?;
            let Some(row) = next else { return Ok(None) };
            let key = BlockKey {
                campaign: campaign.to_owned(),
                pair: row.number(0)?,
                block: row.number(1)?,
                attempt: row.number(2)? + 1,
            };
            if !lock_resources(tx, &key, &class)? {
                return Ok(None);
            }
            let [campaign, pair, block, attempt] = key.values();
            tx.execute(
                "INSERT INTO reservation
                 SELECT n.campaign, n.pair, CAST($3 AS BIGINT), CAST($4 AS BIGINT), n.resource, CAST($5 AS TEXT),
                     CAST($6 AS BIGINT), NULL
                 FROM pair_resource n WHERE n.campaign = $1 AND n.pair = $2",
                &[campaign, pair, block, attempt, (&class).into(), deadline_ns.into()],
            )?;
            tx.execute(
                "UPDATE block SET state = 'leased', attempts = $4 WHERE campaign = $1 AND pair = $2 AND block = $3",
                &key.values(),
            )?;
            Ok(Some(Lease { sender: row.text(3)?, receiver: row.text(4)?, key, deadline_ns }))
        })
    }

    /// Stores the result of an attempt with its summary, and releases its reservation. It counts once, and once per
    /// block.
    pub fn commit(
        &mut self,
        key: &BlockKey,
        now_ns: i64,
        result: &str,
        summary: &str,
    ) -> Result<Committed, FleetError> {
        self.transaction("store a result", |tx| {
            let state = tx.row(
                "SELECT state, attempts FROM block WHERE campaign = $1 AND pair = $2 AND block = $3 {FOR UPDATE}",
                &key.block_values(),
            )?;
            let state = state.ok_or_else(|| format!("it has no such block: {key}"))?;
            if key.attempt == 0 || state.number(1)? < key.attempt {
                return Err(format!("this attempt was never leased: {key}").into());
            }
            release(tx, key, now_ns)?;
            let known = tx.row(
                "SELECT attempt FROM result WHERE campaign = $1 AND pair = $2 AND block = $3",
                &key.block_values(),
            )?;
            if let Some(known) = known {
                return Ok(if known.number(0)? == key.attempt { Committed::Duplicate } else { Committed::Late });
            }
            let [campaign, pair, block, attempt] = key.values();
            tx.execute(
                "INSERT INTO result VALUES ($1, $2, $3, $4, $5, $6)",
                &[campaign, pair, block, attempt, now_ns.into(), result.into()],
            )?;
            let [campaign, pair, block] = key.block_values();
            let values = [campaign, pair, block, summary.into()];
            tx.execute("INSERT INTO summary VALUES ($1, $2, $3, $4)", &values)?;
            tx.execute(
                "UPDATE block SET state = 'done' WHERE campaign = $1 AND pair = $2 AND block = $3",
                &key.block_values(),
            )?;
            Ok(Committed::Counted)
        })
    }

    /// Releases an attempt that failed. Its block is leased again, unless it failed too often: then it is given up.
    /// Returns whether it is.
    pub fn fail(&mut self, key: &BlockKey, now_ns: i64, reason: &str) -> Result<bool, FleetError> {
        self.transaction("release a block", |tx| fail(tx, key, now_ns, reason))
    }

    /// Releases every lease that is over. Returns their attempts.
    pub fn expire(&mut self, now_ns: i64) -> Result<Vec<BlockKey>, FleetError> {
        self.transaction("release expired leases", |tx| {
            let rows = tx.rows(
                "SELECT DISTINCT campaign, pair, block, attempt FROM reservation
                 WHERE released_ns IS NULL AND deadline_ns < $1 ORDER BY campaign, pair, block, attempt",
                &[now_ns.into()],
            )?;
            let mut expired = Vec::new();
            for row in rows {
                let key = key_of(&row)?;
                fail(tx, &key, now_ns, "the lease expired without a result")?;
                expired.push(key);
            }
            Ok(expired)
        })
    }

    /// Every attempt that is leased, with its sender.
    pub fn list_leases(&mut self) -> Result<Vec<(BlockKey, String)>, FleetError> {
        self.transaction("read the leases", |tx| {
            let rows = tx.rows(
                "SELECT b.campaign, b.pair, b.block, b.attempts, p.sender
                 FROM block b JOIN pair p ON p.campaign = b.campaign AND p.pair = b.pair WHERE b.state = 'leased'",
                &[],
            )?;
            rows.iter().map(|row| Ok((key_of(row)?, row.text(4)?))).collect()
        })
    }

    /// The lease of an attempt, whether it is over or not. `None` if it was never leased.
    pub fn lease(&mut self, key: &BlockKey) -> Result<Option<Lease>, FleetError> {
        self.transaction("look up a lease", |tx| {
            let row = tx.row(
                "SELECT p.sender, p.receiver, max(r.deadline_ns)
                 FROM reservation r JOIN pair p ON p.campaign = r.campaign AND p.pair = r.pair
                 WHERE r.campaign = $1 AND r.pair = $2 AND r.block = $3 AND r.attempt = $4
                 GROUP BY p.sender, p.receiver",
                &key.values(),
            )?;
            let Some(row) = row else { return Ok(None) };
            Ok(Some(Lease {
                key: key.clone(),
                sender: row.text(0)?,
                receiver: row.text(1)?,
                deadline_ns: row.int(2)?,
            }))
        })
    }

    /// The open reservations: resource, class and attempt.
    pub fn reservations(&mut self) -> Result<Vec<(String, String, BlockKey)>, FleetError> {
        self.transaction("read the reservations", |tx| {
            let rows = tx.rows(
                "SELECT campaign, pair, block, attempt, resource, class FROM reservation
                 WHERE released_ns IS NULL ORDER BY resource, campaign, pair, block, attempt",
                &[],
            )?;
            rows.iter().map(|row| Ok((row.text(4)?, row.text(5)?, key_of(row)?))).collect()
        })
    }

    /// The summaries of a pair's results by block, as they were committed.
    pub fn summaries(&mut self, campaign: &str, pair: u32) -> Result<Vec<(u32, String)>, FleetError> {
        self.transaction("read summaries", |tx| {
            let rows = tx.rows(
                "SELECT block, summary FROM summary WHERE campaign = $1 AND pair = $2 ORDER BY block",
                &[campaign.into(), pair.into()],
            )?;
            rows.iter().map(|row| Ok((row.number(0)?, row.text(1)?))).collect()
        })
    }

    /// The results of a pair by block, as they were committed.
    pub fn results(&mut self, campaign: &str, pair: u32) -> Result<Vec<(BlockKey, String)>, FleetError> {
        self.transaction("read results", |tx| {
            let rows = tx.rows(
                "SELECT campaign, pair, block, attempt, result FROM result
                 WHERE campaign = $1 AND pair = $2 ORDER BY block",
                &[campaign.into(), pair.into()],
            )?;
            rows.iter().map(|row| Ok((key_of(row)?, row.text(4)?))).collect()
        })
    }
}

fn key_of(row: &Row) -> Result<BlockKey, DbError> {
    Ok(BlockKey {
        campaign: row.text(0)?,
        pair: row.number(1)?,
        block: row.number(2)?,
        attempt: row.number(3)?,
    })
}

/// Locks the resources of a pair, and checks again that they are free. False if another program is reserving them, or
/// has just reserved them.
fn lock_resources(tx: &mut Tx<'_>, key: &BlockKey, class: &str) -> Result<bool, DbError> {
    let [campaign, pair, _] = key.block_values();
    let wanted = tx.row(
        "SELECT count(*) FROM pair_resource WHERE campaign = $1 AND pair = $2",
        &[campaign.clone(), pair.clone()],
    )?;
    let locked = tx.rows(
        "SELECT r.name FROM resource r JOIN pair_resource n ON n.resource = r.name
         WHERE n.campaign = $1 AND n.pair = $2 ORDER BY r.name {FOR UPDATE OF r SKIP LOCKED}",
        &[campaign.clone(), pair.clone()],
    )?;
    if wanted.ok_or("no count")?.int(0)? != locked.len() as i64 {
        return Ok(false);
    }
    let taken = tx.row(
        "SELECT count(*) FROM pair_resource n JOIN reservation o ON o.resource = n.resource AND o.released_ns IS NULL
         WHERE n.campaign = $1 AND n.pair = $2
             AND (o.class = 'exclusive' AND CAST($3 AS TEXT) <> 'background'
                 OR o.class = 'normal' AND CAST($3 AS TEXT) = 'exclusive')",
        &[campaign, pair, class.into()],
    )?;
    Ok(taken.ok_or("no count")?.int(0)? == 0)
}

fn release(tx: &mut Tx<'_>, key: &BlockKey, now_ns: i64) -> Result<(), DbError> {
    let [campaign, pair, block, attempt] = key.values();
    tx.execute(
        "UPDATE reservation SET released_ns = $5
         WHERE campaign = $1 AND pair = $2 AND block = $3 AND attempt = $4 AND released_ns IS NULL",
        &[campaign, pair, block, attempt, now_ns.into()],
    )
}

fn fail(tx: &mut Tx<'_>, key: &BlockKey, now_ns: i64, reason: &str) -> Result<bool, DbError> {
    release(tx, key, now_ns)?;
    let [campaign, pair, block, attempt] = key.values();
    // Only the newest attempt decides about the block: a newer one may be running.
    tx.execute(
        "UPDATE block SET reason = $5, state = CASE
             WHEN attempts < (SELECT most_attempts FROM campaign WHERE id = block.campaign) THEN 'waiting'
             ELSE 'given_up' END
         WHERE campaign = $1 AND pair = $2 AND block = $3 AND attempts = $4 AND state = 'leased'",
        &[campaign, pair, block, attempt, reason.into()],
    )?;
    let given_up = tx.row(
        "SELECT block FROM block WHERE campaign = $1 AND pair = $2 AND block = $3 AND state = 'given_up'",
        &key.block_values(),
    )?;
    Ok(given_up.is_some())
}

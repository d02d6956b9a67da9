//! What an agent holds: leases while it measures, and results until they are committed.

use crate::FleetError;
use crate::agent::describe_failure;
use crate::message::{BlockResult, check_name};
use crate::store::{BlockKey, Class};
use stacklab_store::replace;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const READ: &str = "read the kept results";
const KEEP: &str = "keep a result";
const ENDING: &str = "json";

/// The store never hands out two leases that exclude each other; this refuses them anyway.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<Vec<Held>>);

#[derive(Debug)]
struct Held {
    key: BlockKey,
    class: Class,
    until: Instant,
}

/// A lease that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Lease<'a> {
    all: &'a Leases,
    key: BlockKey,
}

impl Leases {
    /// Fails if another one is held that this one may not run beside.
    pub(super) fn take(
        &self,
        key: &BlockKey,
        class: Class,
        lease: Duration,
    ) -> Result<Lease<'_>, FleetError> {
        let now = Instant::now();
        let mut held = self.lock_leases();
        // A process that outlived its lease is not waited for: its requests have ended.
        held.retain(|one| one.until > now);
        if let Some(other) = held.iter().find(|one| one.key == *key || !one.class.runs_beside(class)) {
            return Err(FleetError::Usage(format!("it holds a lease already, of {}", other.key)));
        }
        held.push(Held { key: key.clone(), class, until: now + lease });
        Ok(Lease { all: self, key: key.clone() })
    }

    pub(super) fn keys(&self) -> Vec<BlockKey> {
        self.lock_leases().iter().map(|one| one.key.clone()).collect()
    }

    fn lock_leases(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.all.lock_leases().retain(|one| one.key != self.key);
    }
}

/// Results on the agent's disk, until the coordinator has committed them.
#[derive(Debug)]
pub(super) struct Kept(PathBuf);

impl Kept {
    pub(super) fn new(folder: &Path) -> Result<Self, FleetError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(describe_failure(KEEP))?;
        Ok(Kept(folder.to_owned()))
    }

    pub(super) fn keys(&self) -> Result<Vec<BlockKey>, FleetError> {
        let files = std::fs::read_dir(&self.0).map_err(describe_failure(READ))?;
        let mut keys: Vec<BlockKey> = files.flatten().filter_map(|file| key(&file.path())).collect();
        keys.sort();
        Ok(keys)
    }

    pub(super) fn get(&self, key: &BlockKey) -> Result<BlockResult, FleetError> {
        let bytes = std::fs::read(self.file(key)?).map_err(describe_failure(READ))?;
        serde_json::from_slice(&bytes).map_err(|error| describe_failure(READ)(error.into()))
    }

    /// Keeps a result: it is on the disk, whole, when this returns.
    pub(super) fn put(&self, key: &BlockKey, result: &BlockResult) -> Result<(), FleetError> {
        let bytes = serde_json::to_vec(result).map_err(|error| describe_failure(KEEP)(error.into()))?;
        replace(&self.file(key)?, &bytes).map_err(describe_failure(KEEP))
    }

    pub(super) fn forget(&self, key: &BlockKey) -> Result<(), FleetError> {
        match std::fs::remove_file(self.file(key)?) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(describe_failure("forget a result")(error))
            }
            _ => Ok(()),
        }
    }

    fn file(&self, key: &BlockKey) -> Result<PathBuf, FleetError> {
        let BlockKey { campaign, pair, block, attempt } = key;
        check_name("a campaign", campaign)?;
        Ok(self.0.join(format!("{campaign},{pair},{block},{attempt}.{ENDING}")))
    }
}

/// The attempt of a file of [`Kept`].
fn key(path: &Path) -> Option<BlockKey> {
    if path.extension()? != ENDING {
        return None;
    }
    let parts: Vec<&str> = path.file_stem()?.to_str()?.split(',').collect();
    let [campaign, pair, block, attempt] = parts[..] else { return None };
    let [pair, block, attempt] = [pair, block, attempt].map(|number| number.parse().ok());
    Some(BlockKey { campaign: campaign.to_owned(), pair: pair?, block: block?, attempt: attempt? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::CpuScope;

    fn make_key(block: u32) -> BlockKey {
        BlockKey { campaign: "c".to_owned(), pair: 0, block, attempt: 1 }
    }

    #[test]
    fn a_second_lease_is_refused_unless_it_may_run_beside() {
        let leases = Leases::default();
        let long = Duration::from_secs(60);
        let first = leases.take(&make_key(0), Class::Exclusive, long).unwrap();
        let error = leases.take(&make_key(1), Class::Exclusive, long).unwrap_err().to_string();
        assert!(error.contains("c, pair 0, block 0, attempt 1"), "{error}");
        assert!(leases.take(&make_key(1), Class::Normal, long).is_err());
        assert!(leases.take(&make_key(0), Class::Background, long).is_err(), "the same attempt twice");
        let background = leases.take(&make_key(2), Class::Background, long).unwrap();
        drop(first);
        leases.take(&make_key(1), Class::Exclusive, long).unwrap();
        drop(background);
        let _over = leases.take(&make_key(3), Class::Exclusive, Duration::ZERO).unwrap();
        leases.take(&make_key(4), Class::Exclusive, long).unwrap();
    }

    #[test]
    fn result_is_kept_until_forgotten_unless_half_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(folder.path()).unwrap();
        let key = BlockKey { campaign: "lab-1".to_owned(), pair: 3, block: 10, attempt: 2 };
        let result =
            BlockResult { path: "p".to_owned(), cpu_scope: CpuScope::Host, hosts: vec![], runs: vec![] };
        kept.put(&key, &result).unwrap();
        std::fs::write(folder.path().join(".lab-1,3,11,1.json.part"), "{").unwrap();
        std::fs::write(folder.path().join("notes.json"), "{}").unwrap();
        assert_eq!(kept.keys().unwrap(), std::slice::from_ref(&key));
        assert_eq!(kept.get(&key).unwrap(), result);
        for _ in 0..2 {
            kept.forget(&key).unwrap();
        }
        assert!(kept.keys().unwrap().is_empty() && kept.get(&key).is_err());
        let outside = BlockKey { campaign: "../x".to_owned(), ..key };
        assert!(kept.put(&outside, &result).unwrap_err().to_string().contains("../x"));
    }
}

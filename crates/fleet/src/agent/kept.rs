//! Results on the agent's disk, until the coordinator has committed them.

use crate::FleetError;
use crate::agent::failed;
use crate::message::BlockResult;
use crate::store::BlockKey;
use stacklab_store::replace;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const READ: &str = "read the kept results";
const KEEP: &str = "keep a result";
const ENDING: &str = "json";

#[derive(Debug)]
pub(super) struct Kept(PathBuf);

impl Kept {
    pub(super) fn new(folder: &Path) -> Result<Self, FleetError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(KEEP))?;
        Ok(Kept(folder.to_owned()))
    }

    /// The attempts whose results are kept.
    pub(super) fn keys(&self) -> Result<Vec<BlockKey>, FleetError> {
        let files = std::fs::read_dir(&self.0).map_err(failed(READ))?;
        let mut keys: Vec<BlockKey> = files.flatten().filter_map(|file| key(&file.path())).collect();
        keys.sort();
        Ok(keys)
    }

    pub(super) fn get(&self, key: &BlockKey) -> Result<BlockResult, FleetError> {
        let bytes = std::fs::read(self.file(key)?).map_err(failed(READ))?;
        serde_json::from_slice(&bytes).map_err(|error| failed(READ)(error.into()))
    }

    /// Keeps a result: it is on the disk, whole, when this returns.
    pub(super) fn put(&self, key: &BlockKey, result: &BlockResult) -> Result<(), FleetError> {
        let bytes = serde_json::to_vec(result).map_err(|error| failed(KEEP)(error.into()))?;
        replace(&self.file(key)?, &bytes).map_err(failed(KEEP))
    }

    pub(super) fn forget(&self, key: &BlockKey) -> Result<(), FleetError> {
        match std::fs::remove_file(self.file(key)?) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("forget a result")(error))
            }
            _ => Ok(()),
        }
    }

    fn file(&self, key: &BlockKey) -> Result<PathBuf, FleetError> {
        let BlockKey { campaign, pair, block, attempt } = key;
        crate::name::check("a campaign", campaign)?;
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

    #[test]
    fn a_result_is_kept_until_it_is_forgotten_and_half_a_file_is_none() {
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

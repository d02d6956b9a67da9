//! The leases that an agent holds. The store never hands out two that exclude each other; this refuses them anyway.

use crate::FleetError;
use crate::store::{BlockKey, Class};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Fence(Mutex<Vec<Held>>);

#[derive(Debug)]
struct Held {
    key: BlockKey,
    class: Class,
    until: Instant,
}

/// A lease that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Lease<'a> {
    fence: &'a Fence,
    key: BlockKey,
}

impl Fence {
    /// Takes a lease.
    ///
    /// # Errors
    /// If another one is held that this one may not run beside.
    pub(super) fn take(
        &self,
        key: &BlockKey,
        class: Class,
        lease: Duration,
    ) -> Result<Lease<'_>, FleetError> {
        let now = Instant::now();
        let mut held = self.held();
        // A process that outlived its lease is not waited for: its requests have ended.
        held.retain(|one| one.until > now);
        if let Some(other) = held.iter().find(|one| one.key == *key || !one.class.runs_beside(class)) {
            return Err(FleetError::Usage(format!("it holds a lease already, of {}", other.key)));
        }
        held.push(Held { key: key.clone(), class, until: now + lease });
        Ok(Lease { fence: self, key: key.clone() })
    }

    /// The attempts whose leases are held.
    pub(super) fn keys(&self) -> Vec<BlockKey> {
        self.held().iter().map(|one| one.key.clone()).collect()
    }

    fn held(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.fence.held().retain(|one| one.key != self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lease_is_refused_unless_it_may_run_beside() {
        let key = |block| BlockKey { campaign: "c".to_owned(), pair: 0, block, attempt: 1 };
        let (fence, long) = (Fence::default(), Duration::from_secs(60));
        let first = fence.take(&key(0), Class::Exclusive, long).unwrap();
        let error = fence.take(&key(1), Class::Exclusive, long).unwrap_err().to_string();
        assert!(error.contains("c, pair 0, block 0, attempt 1"), "{error}");
        assert!(fence.take(&key(1), Class::Normal, long).is_err());
        assert!(fence.take(&key(0), Class::Background, long).is_err(), "the same attempt twice");
        let background = fence.take(&key(2), Class::Background, long).unwrap();
        drop(first);
        fence.take(&key(1), Class::Exclusive, long).unwrap();
        drop(background);
        let _over = fence.take(&key(3), Class::Exclusive, Duration::ZERO).unwrap();
        fence.take(&key(4), Class::Exclusive, long).unwrap();
    }
}

//! Checks that a router's flowtable forwards a connection of each family after its first packets, in both directions.

use crate::mechanism::offload::{count_slow_packets, has_offloaded_connection};
use crate::path_ends::ends_of;
use crate::testbed::path_check::{CheckedPath, ConnectedSockets};
use crate::{AtHost, Attempt, TestbedError};
use stacklab_model::{Family, Mechanism};

/// Datagrams in each direction that a connection has before its others are counted, and those others.
const FIRST: u64 = 20;
const COUNTED: u64 = 100;
const ATTEMPTS: usize = 3;
/// Those that may pass the rules: a flowtable is cleared of connections now and then.
const MAX_SLOW: u64 = COUNTED / 10;

/// What a router did with datagrams of a connection.
struct Observation {
    /// Those that arrived, of both directions.
    arrived: u64,
    /// Packets that passed the router's rules meanwhile.
    slow: u64,
    /// Whether the kernel lists the connection as offloaded, where it lists connections.
    is_listed: Option<bool>,
}

pub(crate) fn check_offload(
    path: &CheckedPath<'_>,
    mechanism: Mechanism,
    family: Family,
) -> Result<(), TestbedError> {
    let [_, router, ..] = path.hosts;
    let ends = ends_of(path.customer, mechanism, family).expect("the family is carried");
    let flow = ConnectedSockets::open(path, mechanism, family, &ends)?;
    let mut verdict = Ok(());
    // A connection that pauses for long, on a machine that is busy, leaves the table.
    for _ in 0..ATTEMPTS {
        flow.exchange(FIRST);
        let before = router.inside(|| count_slow_packets(family))?;
        let arrived = flow.exchange(COUNTED);
        let after = router.inside(|| count_slow_packets(family))?;
        let is_listed = router.inside(|| Ok(has_offloaded_connection(family)))?;
        verdict = judge(&Observation { arrived, slow: after.saturating_sub(before), is_listed });
        if verdict.is_ok() {
            break;
        }
    }
    verdict.attempt(format!("check the flowtable for {family}")).at(router.node())
}

fn judge(observation: &Observation) -> Result<(), String> {
    let Observation { arrived, slow, is_listed } = *observation;
    let sent = 2 * COUNTED;
    // The middle link may lose some; without arrivals nothing is proved.
    if arrived < COUNTED {
        return Err(format!("{arrived} of {sent} datagrams of a connection arrived"));
    }
    if slow > MAX_SLOW {
        return Err(format!(
            "it does not forward: of {sent} datagrams of a known connection, {slow} passed the rules"
        ));
    }
    if is_listed == Some(false) {
        return Err("the kernel lists no connection as offloaded".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_does_not_forward_is_refused() {
        for (arrived, slow, is_listed, reason) in [
            (200, 200, Some(false), "of 200 datagrams of a known connection, 200 passed the rules"),
            (200, 0, Some(false), "lists no connection as offloaded"),
            (3, 0, Some(true), "3 of 200 datagrams of a connection arrived"),
        ] {
            let error = judge(&Observation { arrived, slow, is_listed }).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        judge(&Observation { arrived: 199, slow: 2, is_listed: Some(true) }).unwrap();
        judge(&Observation { arrived: 200, slow: 0, is_listed: None }).unwrap();
    }
}

//! How fast routers delete connections.

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::find_rig;
use crate::trial::search::Arm;
use crate::trial::search::connections::choose_token;
use crate::trial::search::connections::ends::ConnectionEnds;
use stacklab_model::Value;
use stacklab_testbed::DeletedConnections;

/// Times that each arm's connections are deleted; the median counts.
const TEARDOWNS: u32 = 3;
/// The first of the numbers from which tokens are made; those of slices are below.
const FIRST_NUMBER: u32 = 0x8000;

/// Makes and deletes the connections of the arms in turns. Returns a figure for each.
pub(super) fn measure_teardowns(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
) -> Result<Vec<Value>, CampaignError> {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); arms.len()];
    let mut slowness = Vec::new();
    for arm in arms.iter() {
        slowness.push(arm.connections.as_ref().and_then(ConnectionEnds::describe_slowness));
    }
    for turn in 0..TEARDOWNS {
        for (place, arm) in arms.iter_mut().enumerate() {
            if slowness[place].is_some() {
                continue;
            }
            let deleted = tear_down(find_rig(rigs, place), arm, FIRST_NUMBER + turn)?;
            rates[place].extend(deleted.and_then(find_rate));
        }
    }
    let mut figures = Vec::new();
    for (rates, slowness) in rates.into_iter().zip(slowness) {
        figures.push(slowness.map_or_else(|| find_figure(rates), Value::Missing));
    }
    Ok(figures)
}

/// `None` if not all connections were there, or an agent failed.
fn tear_down(
    rig: &mut Rig,
    arm: &mut Arm<'_>,
    number: u32,
) -> Result<Option<DeletedConnections>, CampaignError> {
    let token = choose_token(&arm.prepared, number);
    let Some(ends) = &mut arm.connections else { return Ok(None) };
    // Those of other arms on the same routers would count too.
    ends.delete(rig)?;
    match ends.fill_table(rig, token)? {
        Ok(()) => {
            let deleted = ends.delete(rig)?;
            Ok(Some(deleted).filter(|deleted| deleted.entries >= ends.count()))
        }
        Err(reason) => {
            arm.failure = Some(reason);
            Ok(None)
        }
    }
}

fn find_rate(deleted: DeletedConnections) -> Option<f64> {
    let seconds = deleted.took.as_secs_f64();
    (seconds > 0.0).then(|| deleted.entries as f64 / seconds)
}

fn find_figure(mut rates: Vec<f64>) -> Value {
    if rates.len() < TEARDOWNS as usize / 2 + 1 {
        return Value::Missing("the connections that were to be deleted could not all be made".to_owned());
    }
    rates.sort_by(f64::total_cmp);
    Value::Measured(rates[rates.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_median_of_most_teardowns_counts() {
        assert_eq!(find_figure(vec![5.0, 1.0, 3.0]), Value::Measured(3.0));
        assert_eq!(find_figure(vec![5.0, 1.0]), Value::Measured(5.0));
        assert!(matches!(find_figure(vec![5.0]), Value::Missing(_)));
        let deleted = DeletedConnections { entries: 10_000, took: Duration::from_millis(5) };
        assert_eq!(find_rate(deleted), Some(2e6));
        assert_eq!(find_rate(DeletedConnections { took: Duration::ZERO, ..deleted }), None);
    }
}

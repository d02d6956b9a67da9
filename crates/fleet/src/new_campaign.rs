//! A campaign as it begins: its pairs, and the order of its blocks.

use crate::FleetError;
use crate::pairs::Pairs;
use crate::store::{AgentInfo, Class, NewCampaign, NewPair};
use crate::study::FleetStudy;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use stacklab_traffic::host::now_unix_ns;

/// A campaign of all these pairs: `blocks` blocks of each, each leased `most_attempts` times at most, in random order,
/// so that no pair has another time of day.
pub(crate) fn new_campaign(
    id: &str,
    study: &FleetStudy,
    class: Class,
    pairs: &Pairs,
    (blocks, most_attempts): (u32, u32),
    agents: &[AgentInfo],
) -> Result<NewCampaign, FleetError> {
    crate::name::check("a campaign", id)?;
    let (checked, _) = study.check()?;
    let lacks_family = |pair: &[&AgentInfo; 2]| {
        let mut ends = checked.cells.iter().flat_map(|cell| pair.map(|agent| agent.address(cell.family)));
        ends.find_map(Result::err).map(|error| error.to_string())
    };
    let new = |pair: [&AgentInfo; 2]| NewPair {
        skipped: lacks_family(&pair),
        sender: pair[0].clone(),
        receiver: pair[1].clone(),
    };
    let pairs: Vec<NewPair> = pairs.of(agents)?.into_iter().map(new).collect();
    let measurable: Vec<u32> =
        (0..).zip(&pairs).filter(|(_, pair)| pair.skipped.is_none()).map(|(n, _)| n).collect();
    if measurable.is_empty() {
        let reason = pairs.iter().find_map(|pair| pair.skipped.as_deref()).unwrap_or("there is none");
        return Err(FleetError::Usage(format!("no pair can be measured; the first one: {reason}")));
    }
    let mut generator = Pcg64Mcg::seed_from_u64(study.seed);
    Ok(NewCampaign {
        id: id.to_owned(),
        created_ns: now_ns(),
        request: serde_json::to_string(study).expect("a study is JSON"),
        class,
        most_attempts,
        pairs,
        order: (0..blocks).flat_map(|_| shuffled(&measurable, &mut generator)).collect(),
    })
}

fn shuffled(numbers: &[u32], generator: &mut Pcg64Mcg) -> Vec<u32> {
    let mut numbers = numbers.to_vec();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, (generator.next_u64() % (last as u64 + 1)) as usize);
    }
    numbers
}

/// The time of this host's clock, nanoseconds since the Unix epoch.
pub(crate) fn now_ns() -> i64 {
    i64::try_from(now_unix_ns()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_in_each_round_of_the_order_once() {
        let mut generator = Pcg64Mcg::seed_from_u64(5);
        let rounds: Vec<Vec<u32>> = (0..20).map(|_| shuffled(&[3, 4, 5, 6], &mut generator)).collect();
        assert!(rounds.iter().all(|round| round.iter().sum::<u32>() == 18 && round.len() == 4));
        assert!(rounds.iter().any(|round| *round != rounds[0]));
    }
}

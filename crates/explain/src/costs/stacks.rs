//! What call chains cost in two arms.

use stacklab_model::{Profile, StackCost};
use std::collections::BTreeMap;

/// Least share of an arm's time that a function with its callers has: what has less counts for its caller.
const LEAST_SHARE: f64 = 0.001;
/// Most call chains. Where there are more, the least share is doubled until there are not.
const MOST_STACKS: usize = 1000;

/// Samples by call chain: how many, and nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Sampled(BTreeMap<u32, (u64, f64)>);

impl Sampled {
    pub(super) fn add(&mut self, stack: u32, samples: u64, ns: f64) {
        let sum = self.0.entry(stack).or_default();
        (sum.0, sum.1) = (sum.0 + samples, sum.1 + ns);
    }

    pub(super) fn add_all(&mut self, others: &Sampled) {
        others.0.iter().for_each(|(stack, (samples, ns))| self.add(*stack, *samples, *ns));
    }

    pub(super) fn scaled(mut self, factor: f64) -> Self {
        self.0.values_mut().for_each(|(_, ns)| *ns *= factor);
        self
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    samples: [u64; 2],
    ns: [f64; 2],
}

impl Cost {
    fn add(&mut self, other: &Cost) {
        for arm in [0, 1] {
            self.samples[arm] += other.samples[arm];
            self.ns[arm] += other.ns[arm];
        }
    }
}

pub(super) fn folded(profile: &Profile, arms: &[Sampled; 2]) -> Vec<StackCost> {
    let mut all: BTreeMap<Vec<&str>, Cost> = BTreeMap::new();
    for (arm, sampled) in arms.iter().enumerate() {
        for (stack, (samples, ns)) in &sampled.0 {
            let frames = profile.stacks[*stack as usize].iter();
            let names = frames.map(|frame| profile.frames[*frame as usize].as_str()).collect();
            let cost = all.entry(names).or_default();
            cost.samples[arm] += samples;
            cost.ns[arm] += ns;
        }
    }
    let mut share = LEAST_SHARE;
    while all.len() > MOST_STACKS || share == LEAST_SHARE {
        all = without_small(&all, share);
        share *= 2.0;
    }
    let stack = |(names, cost): (Vec<&str>, Cost)| StackCost {
        functions: names.into_iter().map(str::to_owned).collect(),
        samples: cost.samples,
        ns: cost.ns,
    };
    all.into_iter().map(stack).collect()
}

/// Chains cut where a function with its callers has less than a share of the time in both arms.
fn without_small<'a>(all: &BTreeMap<Vec<&'a str>, Cost>, share: f64) -> BTreeMap<Vec<&'a str>, Cost> {
    let mut whole = Cost::default();
    let mut by_prefix: BTreeMap<&[&str], Cost> = BTreeMap::new();
    for (names, cost) in all {
        whole.add(cost);
        (1..=names.len()).for_each(|depth| by_prefix.entry(&names[..depth]).or_default().add(cost));
    }
    let is_large = |names: &[&str]| {
        let ns = by_prefix[names].ns;
        ns.iter().zip(whole.ns).any(|(ns, all)| *ns >= share * all)
    };
    let mut kept: BTreeMap<Vec<&str>, Cost> = BTreeMap::new();
    for (names, cost) in all {
        // The outermost function stays, however small.
        let depth = (2..=names.len()).take_while(|depth| is_large(&names[..*depth])).last().unwrap_or(1);
        kept.entry(names[..depth.min(names.len())].to_vec()).or_default().add(cost);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains of these functions with these samples of two arms, each of a nanosecond.
    fn folded_of(all: &[(&[u32], [u64; 2])]) -> Vec<StackCost> {
        let profile = Profile {
            stacks: all.iter().map(|(functions, _)| functions.to_vec()).collect(),
            frames: (0..2000).map(|number| format!("f{number}")).collect(),
            ..Profile::default()
        };
        let mut arms = [Sampled::default(), Sampled::default()];
        for (stack, (_, samples)) in (0..).zip(all) {
            (0..2).for_each(|arm| arms[arm].add(stack, samples[arm], samples[arm] as f64));
        }
        folded(&profile, &arms)
    }

    #[test]
    fn what_is_small_counts_for_its_caller_and_nothing_is_lost() {
        let found = folded_of(&[
            (&[0, 1], [5000, 0]),
            (&[0, 1, 2], [1, 2]),
            (&[0, 1, 2, 3], [1, 1]),
            (&[0, 4], [0, 5000]),
        ]);
        let said: Vec<(String, [u64; 2])> =
            found.iter().map(|stack| (stack.functions.join(";"), stack.samples)).collect();
        assert_eq!(said, [("f0;f1".to_owned(), [5002, 3]), ("f0;f4".to_owned(), [0, 5000])]);
        assert_eq!(found[0].ns, [5002.0, 3.0]);
    }

    #[test]
    fn chains_are_no_more_than_a_record_keeps() {
        // Each of so many has a little more than the least share, in one of the arms.
        let stacks: Vec<Vec<u32>> = (1..=1608).map(|function| vec![0, function]).collect();
        let all: Vec<(&[u32], [u64; 2])> = stacks
            .iter()
            .map(|stack| match stack[1] {
                1..=8 => (stack.as_slice(), [1100, 1100]),
                function if function % 2 == 0 => (stack.as_slice(), [100, 0]),
                _ => (stack.as_slice(), [0, 100]),
            })
            .collect();
        let found = folded_of(&all);
        assert_eq!(found.len(), 9);
        let sum: u64 = found.iter().map(|stack| stack.samples[0]).sum();
        assert_eq!(sum, all.iter().map(|(_, samples)| samples[0]).sum::<u64>());
    }
}

//! What call chains cost in two arms, and kernel functions that do the same for IPv4 and for IPv6.

use crate::sampling::profile::Profile;
use stacklab_model::StackCost;
use std::collections::BTreeMap;

/// Least share of an arm's time that a function with its callers has: what has less counts for its caller.
const MIN_SHARE: f64 = 0.001;
/// Most call chains. Where there are more, the least share is doubled until there are not.
const MAX_STACKS: usize = 1000;

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

    pub(super) fn scale(mut self, factor: f64) -> Self {
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

    /// Whether this has a share of the time in one of the arms.
    fn has_share(&self, share: f64, whole: &Cost) -> bool {
        self.ns.iter().zip(whole.ns).any(|(ns, all)| *ns >= share * all)
    }
}

pub(super) fn fold_stacks(profile: &Profile, arms: &[Sampled; 2]) -> Vec<StackCost> {
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
    let mut share = MIN_SHARE;
    while all.len() > MAX_STACKS || share == MIN_SHARE {
        all = without_small(&all, share);
        share *= 2.0;
    }
    let mut stacks = Vec::new();
    for (names, cost) in all {
        let functions = names.into_iter().map(str::to_owned).collect();
        stacks.push(StackCost { functions, samples: cost.samples, ns: cost.ns });
    }
    stacks
}

/// Chains cut where a function with its callers has less than a share of the time in both arms.
fn without_small<'a>(all: &BTreeMap<Vec<&'a str>, Cost>, share: f64) -> BTreeMap<Vec<&'a str>, Cost> {
    let mut whole = Cost::default();
    let mut by_prefix: BTreeMap<&[&str], Cost> = BTreeMap::new();
    for (names, cost) in all {
        whole.add(cost);
        for depth in 1..=names.len() {
            by_prefix.entry(&names[..depth]).or_default().add(cost);
        }
    }
    let mut kept: BTreeMap<Vec<&str>, Cost> = BTreeMap::new();
    for (names, cost) in all {
        // The outermost function stays, however small.
        let mut depth = names.len().min(1);
        while depth < names.len() && by_prefix[&names[..=depth]].has_share(share, &whole) {
            depth += 1;
        }
        kept.entry(names[..depth].to_vec()).or_default().add(cost);
    }
    kept
}

/// Joins the functions of IPv6 with those of IPv4 that do the same; all others stay alone.
pub(crate) fn pair_twins(functions: Vec<(String, usize)>) -> Vec<(String, Vec<usize>)> {
    // A name may be that of several functions.
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    functions.into_iter().for_each(|(name, place)| places.entry(name).or_default().push(place));
    let pairs: Vec<[String; 2]> = places
        .keys()
        .filter_map(|name| {
            let twin = ipv4_names(name).into_iter().find(|twin| places.contains_key(twin))?;
            Some([twin, name.clone()])
        })
        .collect();
    for [ipv4, ipv6] in pairs {
        // An IPv4 function has one twin at most.
        let (Some(mut both), Some(more)) = (places.remove(&ipv4), places.get(&ipv6).cloned()) else {
            continue;
        };
        both.extend(more);
        places.remove(&ipv6);
        places.insert(format!("{ipv4} / {ipv6}"), both);
    }
    places.into_iter().collect()
}

/// IPv6 functions whose IPv4 twin has another name.
const IRREGULAR: [[&str; 2]; 2] =
    [["ip6_input", "ip_local_deliver"], ["ip6_input_finish", "ip_local_deliver_finish"]];

/// What the IPv4 twin of an IPv6 function may be called, the likelier one first: `tcp_v4_rcv` of `tcp_v6_rcv`,
/// `ip_output` of `ip6_output`, `ipv4_mtu` of `ip6_mtu`, `udp_send_skb` of `udp_v6_send_skb`. None for other functions.
fn ipv4_names(ipv6: &str) -> Vec<String> {
    let numbered = rename_words(ipv6, |word| {
        let rest = word.strip_suffix('6')?;
        (rest == "v" || is_protocol(rest)).then(|| format!("{rest}4"))
    });
    let plain = rename_words(ipv6, |word| {
        let rest = word.strip_suffix("v6").filter(|rest| is_protocol(rest));
        rest.or_else(|| word.strip_suffix('6').filter(|rest| is_protocol(rest))).map(str::to_owned)
    });
    let version = rename_words(ipv6, |word| (word == "ip6").then(|| "ipv4".to_owned()));
    let irregular = IRREGULAR.iter().filter(|[name, _]| *name == ipv6).map(|[_, twin]| (*twin).to_owned());
    [numbered, plain, version, ipv6.replacen("_v6_", "_", 1)]
        .into_iter()
        .chain(irregular)
        .filter(|twin| twin != ipv6)
        .collect()
}

/// A name whose words are replaced where `rename` has another one.
fn rename_words(name: &str, rename: impl Fn(&str) -> Option<String>) -> String {
    let words: Vec<String> =
        name.split('_').map(|word| rename(word).unwrap_or_else(|| word.to_owned())).collect();
    words.join("_")
}

fn is_protocol(word: &str) -> bool {
    word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains of these functions with these samples of two arms, each of a nanosecond.
    fn fold_samples(all: &[(&[u32], [u64; 2])]) -> Vec<StackCost> {
        let profile = Profile {
            stacks: all.iter().map(|(functions, _)| functions.to_vec()).collect(),
            frames: (0..2000).map(|number| format!("f{number}")).collect(),
            ..Profile::default()
        };
        let mut arms = [Sampled::default(), Sampled::default()];
        for (stack, (_, samples)) in (0..).zip(all) {
            (0..2).for_each(|arm| arms[arm].add(stack, samples[arm], samples[arm] as f64));
        }
        fold_stacks(&profile, &arms)
    }

    #[test]
    fn small_costs_count_for_the_caller_and_none_is_lost() {
        let found = fold_samples(&[
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
        let found = fold_samples(&all);
        assert_eq!(found.len(), 9);
        let sum: u64 = found.iter().map(|stack| stack.samples[0]).sum();
        assert_eq!(sum, all.iter().map(|(_, samples)| samples[0]).sum::<u64>());
    }

    fn number_names(names: &[&str]) -> Vec<(String, usize)> {
        names.iter().map(|name| (*name).to_owned()).zip(0..).collect()
    }

    #[test]
    fn functions_of_both_families_are_one_row() {
        let all = [
            "tcp_v4_rcv",
            "tcp_v6_rcv",
            "ip_rcv",
            "ipv6_rcv",
            "udpv6_sendmsg",
            "udp_sendmsg",
            "inet6_csk_xmit",
        ];
        let found = pair_twins(number_names(&all));
        let expected = [
            ("inet6_csk_xmit", vec![6]),
            ("ip_rcv / ipv6_rcv", vec![2, 3]),
            ("tcp_v4_rcv / tcp_v6_rcv", vec![0, 1]),
            ("udp_sendmsg / udpv6_sendmsg", vec![5, 4]),
        ];
        assert_eq!(found, expected.map(|(name, places)| (name.to_owned(), places)));
        let unlike =
            [("ip6_mtu", "ipv4_mtu"), ("udp_v6_send_skb", "udp_send_skb"), ("ip6_input", "ip_local_deliver")];
        for (ipv6, ipv4) in unlike {
            assert_eq!(pair_twins(number_names(&[ipv6, ipv4])), [(format!("{ipv4} / {ipv6}"), vec![1, 0])]);
        }
        // Both families call the one without a number.
        let shared = pair_twins(number_names(&[
            "udp_gro_receive",
            "udp4_gro_receive",
            "udp6_gro_receive",
            "crc16",
            "crc14",
        ]));
        let names: Vec<&str> = shared.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["crc14", "crc16", "udp4_gro_receive / udp6_gro_receive", "udp_gro_receive"]);
    }
}

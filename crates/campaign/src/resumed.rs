//! Where a campaign was resumed: its figures belong together only if hardware and kernel are the same.

use stacklab_model::{HostFacts, RunRecord};
use stacklab_store::HostRow;
use std::fs;

/// What hosts have now of which figures depend, and had when the campaign began: on such a machine it is not resumed.
pub fn find_differences(before: &[HostRow], now: &[HostRow]) -> Vec<String> {
    let mut differences = Vec::new();
    for host in now {
        let Some(known) = before.iter().rfind(|known| known.name == host.name) else { continue };
        let of_both = facts(&known.facts).into_iter().zip(facts(&host.facts));
        let changed = of_both.filter(|((_, was), (_, is))| was != is);
        differences.extend(
            changed
                .map(|((what, was), (_, is))| format!("the {what} of {} is {is}, and was {was}", host.name)),
        );
    }
    differences
}

/// The facts of which figures depend, with their names.
fn facts(facts: &HostFacts) -> [(&'static str, String); 5] {
    let quota = match facts.cpu_quota {
        Some(quota) => format!("{:.2} processors", quota.processors()),
        None => "none".to_owned(),
    };
    [
        ("kernel", format!("{} {}", facts.os, facts.kernel)),
        ("architecture", facts.machine.clone()),
        ("processor", facts.cpu_model.clone()),
        ("number of CPUs", facts.cores.to_string()),
        ("CPU quota", quota),
    ]
}

/// The name that this machine has, for the hosts of a campaign on it.
pub fn machine_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// A sentence for each resumption under another host name: it may be another machine of the same hardware and kernel,
/// or another container on the same one.
pub fn describe_moves(hosts: &[HostRow], runs: &[RunRecord]) -> Vec<String> {
    let names =
        hosts.iter().filter_map(|host| Some((host.facts.machine_name.as_deref()?, host.since_unix_ns)));
    let named: Vec<(&str, u64)> = names.collect();
    let mut moves = Vec::new();
    for pair in named.windows(2) {
        let [(was, _), (is, since)] = pair else { continue };
        if was == is {
            continue;
        }
        let later = runs.iter().filter(|run| run.started_unix_ns >= *since);
        let from = match later.map(|run| run.trial.block).min() {
            Some(block) => format!("from block {block} on"),
            None => "with no block so far".to_owned(),
        };
        moves.push(format!("resumed under another host name, {is}, {from} (before: {was})"));
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::CpuQuota;

    fn host(name: &str, change: impl FnOnce(&mut HostFacts)) -> HostRow {
        let mut facts = HostFacts {
            os: "Linux".to_owned(),
            kernel: "6.1.0".to_owned(),
            cores: 2,
            machine_name: Some("alpha".to_owned()),
            ..HostFacts::default()
        };
        change(&mut facts);
        HostRow { name: name.to_owned(), kind: "namespace".to_owned(), since_unix_ns: 5, facts }
    }

    fn differences(change: fn(&mut HostFacts)) -> Vec<String> {
        find_differences(&[host("sender", |_| {}), host("receiver", |_| {})], &[host("sender", change)])
    }

    fn rename(host_name: &'static str) -> impl FnOnce(&mut HostFacts) {
        move |facts| facts.machine_name = Some(host_name.to_owned())
    }

    #[test]
    fn other_hardware_or_kernel_is_another_testbed() {
        let before = [host("sender", |_| {}), host("receiver", |_| {})];
        // After a new start, and in another container, it is the same testbed.
        assert!(differences(|facts| facts.boot_id = Some("another".to_owned())).is_empty());
        assert!(differences(|facts| facts.machine_name = Some("beta".to_owned())).is_empty());
        assert!(find_differences(&before, &[host("router1", |facts| facts.cores = 9)]).is_empty());
        let fewer = differences(|facts| facts.cores = 1);
        assert_eq!(fewer, ["the number of CPUs of sender is 1, and was 2"]);
        let newer = differences(|facts| facts.kernel = "6.6.0".to_owned());
        assert_eq!(newer, ["the kernel of sender is Linux 6.6.0, and was Linux 6.1.0"]);
        assert_eq!(differences(|facts| facts.machine = "aarch64".to_owned()).len(), 1);
        assert_eq!(differences(|facts| facts.cpu_model = "another".to_owned()).len(), 1);
        let quota = CpuQuota { quota_us: 50_000, period_us: 100_000 };
        let held = find_differences(&before, &[host("sender", |facts| facts.cpu_quota = Some(quota))]);
        assert_eq!(held, ["the CPU quota of sender is 0.50 processors, and was none"]);
    }

    #[test]
    fn another_host_name_is_said_once_for_each_resumption() {
        let same = [host("sender", |_| {}), host("receiver", |_| {}), host("sender", |_| {})];
        assert!(describe_moves(&same, &[]).is_empty());
        let moved =
            [same.to_vec(), vec![host("sender", rename("beta")), host("receiver", rename("beta"))]].concat();
        assert_eq!(
            describe_moves(&moved, &[]),
            ["resumed under another host name, beta, with no block so far (before: alpha)"]
        );
    }
}

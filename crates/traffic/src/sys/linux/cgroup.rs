//! CPU quotas of this process's control groups, of both versions (Documentation/admin-guide/cgroup-v2.rst and
//! scheduler/sched-bwc.rst in the kernel's sources). Containers have one.

use stacklab_model::CpuQuota;
use std::fs;
use std::path::{Path, PathBuf};

/// The CPU quota that binds this process, and how long quotas kept its control groups from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLimit {
    /// The smallest of those of its control group and the ones above.
    pub quota: CpuQuota,
    /// Time, since each group was made, in all groups that have a quota, microseconds.
    pub throttled_us: u64,
    /// The number of periods in which that happened.
    pub throttled_periods: u64,
}

/// This process's limit. `None` without a quota, and if none can be read.
pub fn cpu_limit() -> Option<CpuLimit> {
    limit_below(Path::new("/"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The limit as the files below `root` have it.
fn limit_below(root: &Path) -> Option<CpuLimit> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let membership = read("proc/self/cgroup");
    let folders = list_folders(&membership, &read("proc/self/mountinfo"));
    let limits = folders.iter().filter_map(|(version, folder)| {
        read_limit(*version, &root.join(folder.strip_prefix("/").unwrap_or(folder)))
    });
    limits.reduce(CpuLimit::with)
}

impl CpuLimit {
    fn with(self, other: CpuLimit) -> CpuLimit {
        let is_smaller = other.quota.processors() < self.quota.processors();
        CpuLimit {
            quota: if is_smaller { other.quota } else { self.quota },
            throttled_us: self.throttled_us.saturating_add(other.throttled_us),
            throttled_periods: self.throttled_periods.saturating_add(other.throttled_periods),
        }
    }
}

/// The folders of the process's control groups for CPU time: its group, and those above it as far as they are mounted.
fn list_folders(membership: &str, mountinfo: &str) -> Vec<(Version, PathBuf)> {
    let mut folders = Vec::new();
    for version in [Version::V1, Version::V2] {
        let mut mounts = mountinfo.lines().filter_map(CgroupMount::parse);
        // The same hierarchy may be mounted several times.
        let Some(mount) = mounts.find(|mount| mount.version == version) else { continue };
        let Some(group) = membership.lines().find_map(|line| group_of(mount.version, line)) else { continue };
        // A container may see the path of its group on the machine, although its own group is mounted.
        let below = Path::new(group).strip_prefix(mount.root).unwrap_or(Path::new(""));
        let own = Path::new(mount.at).join(below);
        let all = own.ancestors().take_while(|folder| folder.starts_with(mount.at));
        folders.extend(all.map(|folder| (mount.version, folder.to_owned())));
    }
    folders
}

/// A mounted hierarchy of control groups that can limit CPU time.
struct CgroupMount<'a> {
    version: Version,
    /// The group that is mounted.
    root: &'a str,
    at: &'a str,
}

impl<'a> CgroupMount<'a> {
    /// `ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS.. - TYPE SOURCE OPTIONS` (proc_pid_mountinfo(5)).
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let root = fields.next()?;
        let at = fields.next()?;
        let mut fields = system.split(' ');
        let version = match (fields.next()?, fields.nth(1)?) {
            ("cgroup2", _) => Version::V2,
            ("cgroup", options) if options.split(',').any(|option| option == "cpu") => Version::V1,
            _ => return None,
        };
        Some(CgroupMount { version, root, at })
    }
}

/// The path in a line `ID:CONTROLLERS:PATH` of /proc/self/cgroup, if it is of this hierarchy.
fn group_of(version: Version, line: &str) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    fields.next()?;
    let controllers = fields.next()?;
    let path = fields.next()?;
    let is_of = match version {
        Version::V1 => controllers.split(',').any(|controller| controller == "cpu"),
        Version::V2 => controllers.is_empty(),
    };
    is_of.then_some(path)
}

fn read_limit(version: Version, folder: &Path) -> Option<CpuLimit> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let stat = read("cpu.stat").unwrap_or_default();
    match version {
        Version::V1 => parse_v1(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?, &stat),
        Version::V2 => parse_v2(&read("cpu.max")?, &stat),
    }
}

/// A quota of -1 means none. Times are in nanoseconds.
fn parse_v1(quota: &str, period: &str, stat: &str) -> Option<CpuLimit> {
    let quota = CpuQuota { quota_us: quota.trim().parse().ok()?, period_us: period.trim().parse().ok()? };
    let throttled_us = field(stat, "throttled_time") / 1000;
    Some(CpuLimit { quota, throttled_us, throttled_periods: field(stat, "nr_throttled") })
}

/// `QUOTA PERIOD`; the quota `max` means none.
fn parse_v2(max: &str, stat: &str) -> Option<CpuLimit> {
    let (quota, period) = max.trim().split_once(' ')?;
    let quota = CpuQuota { quota_us: quota.parse().ok()?, period_us: period.parse().ok()? };
    let throttled_us = field(stat, "throttled_usec");
    Some(CpuLimit { quota, throttled_us, throttled_periods: field(stat, "nr_throttled") })
}

/// The value in a line `NAME VALUE`; 0 without one.
fn field(stat: &str, name: &str) -> u64 {
    let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files below a folder that stands for `/`.
    fn limit(files: &[(&str, &str)]) -> Option<CpuLimit> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        limit_below(root.path())
    }

    const MOUNT_V2: (&str, &str) = (
        "proc/self/mountinfo",
        "24 1 0:22 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
    );

    #[test]
    fn reads_quota_and_throttling_of_version_2() {
        let found = limit(&[
            MOUNT_V2,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
            (
                "sys/fs/cgroup/cpu.stat",
                "usage_usec 33\nnr_periods 506\nnr_throttled 334\nthrottled_usec 15800000\n",
            ),
        ]);
        let quota = CpuQuota { quota_us: 150_000, period_us: 100_000 };
        assert_eq!(found, Some(CpuLimit { quota, throttled_us: 15_800_000, throttled_periods: 334 }));
    }

    #[test]
    fn smallest_quota_of_all_ancestors_wins() {
        let found = limit(&[
            MOUNT_V2,
            ("proc/self/cgroup", "0::/jobs/mine\n"),
            ("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/jobs/cpu.stat", "nr_throttled 2\nthrottled_usec 30\n"),
            ("sys/fs/cgroup/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/cpu.stat", "nr_throttled 1\nthrottled_usec 4\n"),
            // Of other processes.
            ("sys/fs/cgroup/other/cpu.max", "10000 100000\n"),
        ]);
        let quota = CpuQuota { quota_us: 50_000, period_us: 100_000 };
        assert_eq!(found, Some(CpuLimit { quota, throttled_us: 34, throttled_periods: 3 }));
    }

    /// As podman has it: the path is the machine's, and the container's own group is mounted.
    #[test]
    fn reads_quota_and_throttling_of_version_1() {
        let mounts = "80 79 0:29 /pods/a /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
            82 79 0:31 /pods/a /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n";
        let found = limit(&[
            ("proc/self/mountinfo", mounts),
            ("proc/self/cgroup", "3:cpuset:/pods/a\n1:cpu,cpuacct:/pods/a\n0::/\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/cpu.stat",
                "nr_periods 506\nnr_throttled 334\nthrottled_time 15800000000\n",
            ),
        ]);
        let quota = CpuQuota { quota_us: 100_000, period_us: 100_000 };
        assert_eq!(found, Some(CpuLimit { quota, throttled_us: 15_800_000, throttled_periods: 334 }));
    }

    #[test]
    fn without_quota_there_is_no_limit() {
        let v2 = [MOUNT_V2, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.max", "max 100000\n")];
        assert_eq!(limit(&v2), None);
        let v1 = [
            ("proc/self/mountinfo", "80 79 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            ("proc/self/cgroup", "1:cpu:/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(limit(&v1), None);
        assert_eq!(limit(&[]), None);
    }
}

//! A control group whose processes may have so much memory together: beyond that the kernel kills one of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a group may have processes after the campaign's end.
const SOON: Duration = Duration::from_secs(2);

/// The group. It is removed when dropped, and must have no processes then.
pub(super) struct MemoryGroup {
    folder: PathBuf,
    version: Version,
}

/// The version of control groups that has the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl MemoryGroup {
    /// A new group below the top one, for so many bytes.
    ///
    /// # Errors
    /// Why this machine has none that can be had.
    pub(super) fn new(bytes: u64) -> Result<Self, String> {
        let (top, version) = controller()?;
        let made = tempfile::Builder::new().prefix("stacklab-chaos-").tempdir_in(&top);
        let folder = made.map_err(|error| format!("no group can be made in {}: {error}", top.display()))?;
        // It is removed as a group is, by itself and not file by file.
        let group = MemoryGroup { folder: folder.keep(), version };
        let limited = match version {
            // Without memory on disk in its place, where that is counted.
            Version::One => group.write("memory.limit_in_bytes", bytes).and_then(|()| {
                let all = "memory.memsw.limit_in_bytes";
                if group.folder.join(all).exists() { group.write(all, bytes) } else { Ok(()) }
            }),
            Version::Two => group.write("memory.max", bytes).and_then(|()| {
                let swap = "memory.swap.max";
                if group.folder.join(swap).exists() { group.write(swap, 0) } else { Ok(()) }
            }),
        };
        limited.map_err(|error| format!("the limit of {} cannot be set: {error}", group.folder.display()))?;
        Ok(group)
    }

    /// Moves a process into it. What the process has already is not counted. Returns whether it was there.
    pub(super) fn take(&self, pid: u32) -> bool {
        match self.write("cgroup.procs", u64::from(pid)) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => false,
            Err(error) => panic!("{pid} cannot be moved into {}: {error}", self.folder.display()),
        }
    }

    /// How many of its processes the kernel has killed.
    pub(super) fn killed(&self) -> u64 {
        let name = if self.version == Version::One { "memory.oom_control" } else { "memory.events" };
        let path = self.folder.join(name);
        let text = fs::read_to_string(&path).unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        count.unwrap_or_else(|| panic!("{} has no oom_kill: {text}", path.display()))
    }

    fn write(&self, name: &str, value: u64) -> io::Result<()> {
        fs::write(self.folder.join(name), value.to_string())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let start = Instant::now();
        while let Err(error) = fs::remove_dir(&self.folder) {
            if start.elapsed() > SOON {
                // Not in a panic, whose reason is the better one.
                let said = format!("{} cannot be removed: {error}", self.folder.display());
                if std::thread::panicking() {
                    eprintln!("{said}")
                } else {
                    panic!("{said}")
                }
                return;
            }
            sleep(Duration::from_millis(10));
        }
    }
}

/// Where the top group of the memory controller is mounted.
fn controller() -> Result<(PathBuf, Version), String> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    for mount in mounts.lines() {
        let fields: Vec<&str> = mount.split(' ').collect();
        let [_, place, kind, options, ..] = fields[..] else { continue };
        let place = Path::new(place);
        match kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => {
                return Ok((place.to_owned(), Version::One));
            }
            // Its groups have it only if the top one gives it to them, which is the machine's own setting.
            "cgroup2"
                if names_memory(&place.join("cgroup.controllers"))
                    && names_memory(&place.join("cgroup.subtree_control")) =>
            {
                return Ok((place.to_owned(), Version::Two));
            }
            _ => {}
        }
    }
    Err("no memory controller of control groups is mounted".to_owned())
}

/// Whether a file of a group lists the memory controller.
fn names_memory(file: &Path) -> bool {
    let controllers = fs::read_to_string(file).unwrap_or_default();
    controllers.split_whitespace().any(|controller| controller == "memory")
}

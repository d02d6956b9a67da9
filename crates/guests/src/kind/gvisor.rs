//! gVisor as a host. `runsc` takes over the namespace's interface with its addresses, and the agent runs on the
//! network stack of gVisor.

use crate::{Boot, GuestRole, Image, Running};
use serde_json::json;
use stacklab_testbed::kernel::sys::mount_unseen;
use stacklab_testbed::{AGENT, Attachment, Attempt, Fault, GuestSpec};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Debug)]
pub(crate) struct Gvisor(pub Image);

impl Boot for Gvisor {
    fn version(&self) -> String {
        format!("gVisor {}", self.0.version)
    }

    fn attachment(&self) -> Attachment {
        Attachment::Interface
    }

    fn boot(&self, spec: &GuestSpec<'_>, _: GuestRole) -> Result<Running, Fault> {
        let bundle = spec.folder.join("bundle");
        fs::create_dir_all(&bundle).attempt(format!("create {}", bundle.display()))?;
        let config = bundle.join("config.json");
        fs::write(&config, config_of(spec.program, spec.namespace))
            .attempt(format!("write {}", config.display()))?;
        let console = spec.folder.join("console");
        let log = File::create(&console).attempt(format!("write {}", console.display()))?;
        let mut command = Command::new(self.0.file("runsc"));
        command
            .arg(format!("--root={}", spec.folder.join("state").display()))
            .args(["--ignore-cgroups", "--platform=systrap", "--overlay2=none"])
            .args(["--net-raw", "--network=sandbox"])
            .arg(format!("--gso={}", spec.offloads))
            .arg(format!("--software-gso={}", spec.offloads))
            .args(["run", "--bundle"])
            .arg(&bundle)
            .arg(format!("stacklab-{}", spec.name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        // `runsc` keeps its own network namespace alive by a mount.
        mount_unseen(&mut command);
        let process = spec.spawn(&mut command)?;
        Ok(Running { process, channel: None, role: None, console })
    }
}

/// The bundle's configuration: this machine's files, read-only, and the agent as the only process.
fn config_of(program: &Path, namespace: u32) -> String {
    let all = ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_NICE"];
    let program = program.display().to_string();
    let [agent, stdio] = AGENT;
    let config = json!({
        "ociVersion": "1.0.0",
        "process": {
            "user": { "uid": 0, "gid": 0 },
            "args": [program, agent, stdio],
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "capabilities": { "bounding": all, "effective": all, "permitted": all },
        },
        "root": { "path": "/", "readonly": true },
        "hostname": "stacklab",
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"] },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs" },
        ],
        "linux": { "namespaces": [
            { "type": "pid" },
            { "type": "ipc" },
            { "type": "uts" },
            { "type": "mount" },
            { "type": "network", "path": format!("/proc/{namespace}/ns/net") },
        ] },
    });
    config.to_string()
}

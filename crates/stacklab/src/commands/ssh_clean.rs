//! `stacklab ssh-clean`.

use crate::cli::tools::SshCleanOptions;
use crate::commands::output::print_text;
use crate::failure::Failure;
use stacklab_campaign::rig::agent_copy::remove;
use stacklab_model::System;

/// Removes this program's copies from machines.
pub(crate) fn ssh_clean(options: &SshCleanOptions) -> Result<(), Failure> {
    let machine = |host: &String| {
        let name = host.strip_prefix("ssh:").unwrap_or(host);
        let system: Option<System> = format!("ssh:{name}").parse().ok();
        system.ok_or_else(|| Failure::Usage(format!("{host:?} names no machine that ssh reaches")))
    };
    let machines: Vec<System> = options.hosts.iter().map(machine).collect::<Result<_, _>>()?;
    for system in machines {
        let removed = remove(&system)?;
        if removed.is_empty() {
            print_text(&format!("{system}: no copy of stacklab found\n"))?;
        }
        for name in removed {
            print_text(&format!("{system}: removed {name}\n"))?;
        }
    }
    Ok(())
}

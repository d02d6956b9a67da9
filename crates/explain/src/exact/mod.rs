//! Exact counts: the instructions of a message by kernel function, from a machine that QEMU emulates.
//!
//! The guest boots a stock kernel with this program as its init process, which sends and receives messages of two
//! arms in turns ([`inside`]). A plugin counts each executed instruction between marks (`sys/plugin.rs`). The virtual
//! clock counts instructions, not time, so the same kernel and program give the same counts on any machine.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `request` | which messages |
//! | `source` | the kernel, as the command line names it |
//! | `qemu` | whether this machine's QEMU can count |
//! | `beside` | the arms of a sampled study |
//! | `inside` | the guest's side |
//! | `networks` | the testbeds inside the guest |
//! | `output` | parsers of the plugin's counts and the guest's report |
//! | `tables` | counts by function and stage |
//! | `sys` | marks, the plugin, all `unsafe` |

pub(crate) mod beside;
pub(crate) mod inside;
mod networks;
mod output;
pub(crate) mod plan;
pub(crate) mod qemu;
pub(crate) mod request;
pub(crate) mod source;
mod sys;
mod tables;

use crate::error::ExplainError;
use crate::exact::networks::{LINK, nft};
use crate::exact::plan::ExactPlan;
use crate::exact::qemu::{INTERFACE, PLUGIN, check_emulator, interface};
use stacklab_campaign::CampaignError;
use stacklab_guests::boot_files;
use stacklab_guests::kernel::Kernel;
use stacklab_model::{ExactCell, ExactCounts, ExactPath, printable_lines};
use stacklab_testbed::RoutedSpec;
use stacklab_testbed::mechanism::translate::tayga_program;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The system whose kernel is counted without another wish.
pub const KERNEL: &str = "linux-6.1";
/// Time that a machine may take; it needs about 20 s when two others use the CPUs.
const PATIENCE: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_millis(20);
/// Instructions between a mark and the reading of the clock beside it, at both ends of a phase.
const BESIDE_MARKS: u64 = 64;

/// Counts the instructions of a plan's messages in a virtual machine with this kernel and program.
///
/// # Errors
/// QEMU is missing, or the machine failed, each in a sentence; or the user interrupted.
pub fn count_instructions(
    plan: &ExactPlan,
    kernel: &Kernel,
    program: &Path,
    interrupted: &AtomicBool,
) -> Result<ExactCounts, ExplainError> {
    let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
    let path = |name: &str| folder.path().join(name);
    let files = boot_files(kernel, program, &programs(plan)?, folder.path()).map_err(CampaignError::from)?;
    let version = check_emulator(&files.qemu).map_err(ExplainError::Exact)?;
    let interface = interface(&version).map_err(ExplainError::Exact)?;
    let failed = |attempted: &str, reason: &dyn std::fmt::Display| {
        ExplainError::Exact(format!("{attempted}: {reason}"))
    };
    fs::write(path("plugin.so"), PLUGIN).map_err(ExplainError::Folder)?;
    let errors = File::create(path("errors")).map_err(ExplainError::Folder)?;
    let mut command = Command::new(&files.qemu);
    // The guest and its names of files are those of this program, and these files are in this folder.
    command
        .current_dir(folder.path())
        .env(INTERFACE, interface.to_string())
        .args(["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .args(["-M", "q35", "-smp", "1", "-m", "1024", "-accel", "tcg", "-cpu", "Nehalem"])
        // Virtual time is the number of instructions, and idle time is skipped.
        .args(["-icount", "shift=0,sleep=off,align=off", "-seed", "1"])
        .args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"])
        .args(["-plugin", "./plugin.so,out=counts"])
        .args(["-chardev", "file,id=console,path=console", "-device", "isa-serial,chardev=console"])
        // Without ioeventfd, the device acts when the guest says so, and not when another thread of QEMU runs.
        .args(["-device", "virtio-serial-pci,ioeventfd=off", "-chardev", "file,id=report,path=report"])
        .args(["-device", "virtserialport,chardev=report,name=stacklab"])
        .arg("-kernel")
        .arg(&files.kernel)
        .arg("-initrd")
        .arg(&files.initramfs)
        .args(["-append", &format!(
            "console=ttyS0 quiet panic=-1 nokaslr norandmaps mitigations=off rdinit=/stacklab -- guest --count {plan}"
        )])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    sys::end_with_parent(&mut command);
    let mut running = Running(command.spawn().map_err(|reason| failed("cannot start QEMU", &reason))?);
    let started = Instant::now();
    while running.0.try_wait().map_err(|reason| failed("cannot wait for QEMU", &reason))?.is_none() {
        if interrupted.load(Ordering::Relaxed) {
            return Err(ExplainError::Interrupted);
        }
        if started.elapsed() > PATIENCE {
            let reason =
                format!("it is not done after {} s{}", PATIENCE.as_secs(), last_words(&path("console")));
            return Err(ExplainError::Kernel(format!("the emulated machine hangs: {reason}")));
        }
        std::thread::sleep(LOOK);
    }
    let open = |name: &str| match File::open(path(name)) {
        Ok(file) => Ok(BufReader::new(file)),
        Err(_) => Err(failed("QEMU ended at once", &last_line(&path("errors")).trim_start_matches(": "))),
    };
    let (release, cells) =
        read_counts(plan, open("counts")?, open("report")?).map_err(|reason| {
            match reason == output::NONE {
                true => ExplainError::Kernel(reason + &last_words(&path("console"))),
                false => ExplainError::Kernel(reason),
            }
        })?;
    Ok(ExactCounts { qemu: version, kernel: release, cells })
}

/// The programs beside this one that a plan's networks need in the guest.
fn programs(plan: &ExactPlan) -> Result<Vec<PathBuf>, ExplainError> {
    let mut all = Vec::new();
    let translates = |path| matches!(path, ExactPath::Routed(mechanism) if RoutedSpec::of_namespaces(mechanism, &LINK).runs_tayga());
    if plan.arms().any(|arm| translates(arm.path)) {
        all.push(tayga_program().map_err(CampaignError::from)?);
    }
    if plan.arms().any(|arm| arm.rules > 0) {
        all.push(nft().map_err(CampaignError::from)?);
    }
    Ok(all)
}

/// The guest's kernel and the cells of a plan, from the files that an emulated machine leaves.
pub(crate) fn read_counts(
    plan: &ExactPlan,
    counts: impl BufRead,
    report: impl BufRead,
) -> Result<(String, Vec<ExactCell>), String> {
    let (kernel, ticks, symbols) = output::report(report, plan.phases())?;
    let phases = output::phases(counts, plan.phases())?;
    for (phase, ticks) in phases.iter().zip(ticks) {
        if !(ticks..ticks.saturating_add(BESIDE_MARKS)).contains(&phase.total) {
            return Err(format!(
                "the plugin counted {} instructions in a phase in which QEMU's own counter advanced by {ticks}",
                phase.total
            ));
        }
    }
    let cells = tables::cells(plan, &phases, &symbols);
    Ok((kernel, cells))
}

/// A process that does not outlive this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last line of a file with text, after a colon; empty without one.
fn last_line(path: &Path) -> String {
    last_line_with(path, &[""])
}

/// The line of a console that says why a guest ended.
fn last_words(console: &Path) -> String {
    last_line_with(console, &["not syncing", "stacklab: ", ""])
}

/// The last line with the first of these words that the end of a file has.
fn last_line_with(path: &Path, words: &[&str]) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(8192)..]).into_owned();
    let with = |word: &&str| text.lines().rev().find(|line| !line.trim().is_empty() && line.contains(word));
    words.iter().find_map(with).map_or_else(String::new, |line| format!(": {}", printable_lines(line.trim())))
}

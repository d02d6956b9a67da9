//! Exact counts: the instructions of a message by kernel function, from a machine that QEMU emulates.
//!
//! The guest boots a stock kernel with this program as its init process, which sends and receives messages of two
//! arms in turns ([`inside`]). A plugin counts each executed instruction between marks (`sys/plugin.rs`). The virtual
//! clock counts instructions, not time, so the same kernel and program give the same counts on any machine.
//!
//! | file | contents |
//! |---|---|
//! | `plan` | which messages |
//! | `beside` | the kernel, as the command line names it; the arms of a sampled study |
//! | `campaign` | the cells of a campaign whose comparisons ask for counts |
//! | `inside` | the guest's side: testbeds and messages |
//! | `counts` | parsers of what the guest leaves; counts by function and stage |
//! | `programs` | user space: programs of a study's own, by function |
//! | `sys` | marks, the plugin, all `unsafe` |

pub(crate) mod beside;
pub(crate) mod campaign;
pub(crate) mod counts;
pub(crate) mod inside;
pub(crate) mod plan;
pub(crate) mod programs;
mod sys;

use crate::ExplainError;
use crate::exact::counts::{count_phases, read_counts};
use crate::exact::inside::find_tables;
use crate::exact::plan::ExactPlan;
use stacklab_campaign::CampaignError;
use stacklab_guests::kernel::Kernel;
use stacklab_guests::{BootFiles, boot_files, emulator};
use stacklab_model::{ExactCell, ExactCounts, ExactPath, printable_lines};
use stacklab_study::LINK;
use stacklab_testbed::RoutedSpec;
use stacklab_testbed::mechanism::nat::nft_program;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The system whose kernel is counted without another wish.
pub const KERNEL: &str = "linux-6.1";
/// Time that a machine may take; it needs about 20 s when two others use the CPUs.
const TIMEOUT: Duration = Duration::from_secs(900);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How often it is said which cell is counted.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Counts the instructions of a plan's messages in a virtual machine with this kernel and program. `step` is called
/// every five seconds with the cell that is counted.
pub fn count_instructions(
    plan: &ExactPlan,
    kernel: &Kernel,
    program: &Path,
    step: &mut dyn FnMut(&str),
    interrupted: &AtomicBool,
) -> Result<ExactCounts, ExplainError> {
    let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
    let files = boot_files(kernel, program, &programs(plan)?, folder.path()).map_err(CampaignError::from)?;
    let version = check_emulator(&files.qemu).map_err(ExplainError::Exact)?;
    let interface = interface(&version).map_err(ExplainError::Exact)?;
    let running = start_emulator(plan, &files, interface, folder.path())?;
    await_emulator(running, plan, folder.path(), step, interrupted)?;
    let (release, cells) = read_results(plan, folder.path())?;
    Ok(ExactCounts { qemu: version, kernel: release, cells })
}

/// Refuses a system whose QEMU cannot count.
pub(crate) fn check_machine() -> Result<(), ExplainError> {
    let qemu = emulator().map_err(CampaignError::from)?;
    check_emulator(&qemu).map_err(ExplainError::Exact)?;
    Ok(())
}

/// Starts the machine. It leaves its files in the folder: `counts`, `report`, `console` and `errors`.
fn start_emulator(
    plan: &ExactPlan,
    files: &BootFiles,
    interface: u32,
    folder: &Path,
) -> Result<OwnedChild, ExplainError> {
    fs::write(folder.join("plugin.so"), PLUGIN).map_err(ExplainError::Folder)?;
    let errors = File::create(folder.join("errors")).map_err(ExplainError::Folder)?;
    let mut command = Command::new(&files.qemu);
    // The guest and its names of files are those of this program, and these files are in this folder.
    command
        .current_dir(folder)
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
        .args(["-append", &format!("{GUEST_KERNEL} rdinit=/stacklab -- guest --count {plan}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    sys::end_with_parent(&mut command);
    Ok(OwnedChild(command.spawn().map_err(|reason| to_exact_error("cannot start QEMU", &reason))?))
}

/// The command line of the guest's kernel. Linux finds a received datagram's route in its socket only if that is the
/// first of its hash bucket. With the few buckets of a small machine, two of forty pairs had sockets that share one,
/// and with it 514 instructions more for each message.
const GUEST_KERNEL: &str =
    "console=ttyS0 quiet panic=-1 nokaslr norandmaps mitigations=off uhash_entries=65536";

fn to_exact_error(attempted: &str, reason: &dyn std::fmt::Display) -> ExplainError {
    ExplainError::Exact(format!("{attempted}: {reason}"))
}

/// Waits until the machine has ended. It is killed if the user interrupts, or if it hangs.
fn await_emulator(
    mut running: OwnedChild,
    plan: &ExactPlan,
    folder: &Path,
    step: &mut dyn FnMut(&str),
    interrupted: &AtomicBool,
) -> Result<(), ExplainError> {
    let started = Instant::now();
    let mut next = SIGN_OF_LIFE;
    while running.0.try_wait().map_err(|reason| to_exact_error("cannot wait for QEMU", &reason))?.is_none() {
        if interrupted.load(Ordering::Relaxed) {
            return Err(ExplainError::Interrupted);
        }
        if started.elapsed() > TIMEOUT {
            let seconds = TIMEOUT.as_secs();
            let last = last_line_with(&folder.join("console"), &LAST_WORDS);
            let reason = format!("the emulated machine hangs: it is not done after {seconds} s{last}");
            return Err(ExplainError::Kernel(reason));
        }
        if started.elapsed() > next {
            next += SIGN_OF_LIFE;
            let cell = plan.describe_place(count_phases(&folder.join("counts")));
            step(&format!("{cell}, {} s so far", started.elapsed().as_secs()));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// The guest's kernel release and the counts, from the files that the machine left.
fn read_results(plan: &ExactPlan, folder: &Path) -> Result<(String, Vec<ExactCell>), ExplainError> {
    let counts_file = open_result(folder, "counts")?;
    let report_file = open_result(folder, "report")?;
    read_counts(plan, counts_file, report_file).map_err(|reason| {
        if reason == counts::NONE {
            ExplainError::Kernel(reason + &last_line_with(&folder.join("console"), &LAST_WORDS))
        } else {
            ExplainError::Kernel(reason)
        }
    })
}

fn open_result(folder: &Path, name: &str) -> Result<BufReader<File>, ExplainError> {
    let Ok(file) = File::open(folder.join(name)) else {
        let last = last_line_with(&folder.join("errors"), &[""]);
        return Err(to_exact_error("QEMU ended at once", &last.trim_start_matches(": ")));
    };
    Ok(BufReader::new(file))
}

/// The programs beside this one that a plan's networks need in the guest.
fn programs(plan: &ExactPlan) -> Result<Vec<PathBuf>, ExplainError> {
    let mut all = Vec::new();
    for arm in plan.arms() {
        if let ExactPath::Routed(mechanism) = arm.path {
            let mut spec = RoutedSpec::of_namespaces(mechanism, &LINK);
            spec.kind.tables = find_tables(arm);
            spec.kind.rules = arm.firewall;
            all.extend(spec.programs().map_err(CampaignError::from)?);
        }
        if arm.rules > 0 {
            all.push(nft_program().map_err(CampaignError::from)?);
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// A process that does not outlive this value.
struct OwnedChild(Child);

impl Drop for OwnedChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the console says of why a guest ended.
const LAST_WORDS: [&str; 3] = ["not syncing", "stacklab: ", ""];

/// The last line with the first of these words that the end of a file has, after a colon; empty without one.
fn last_line_with(path: &Path, words: &[&str]) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(8192)..]).into_owned();
    for word in words {
        let mut lines = text.lines().rev();
        if let Some(line) = lines.find(|line| !line.trim().is_empty() && line.contains(word)) {
            return format!(": {}", printable_lines(line.trim()));
        }
    }
    String::new()
}

/// The plugin, empty in builds for targets that it does not support.
const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));
/// Where the plugin finds the version of the interface that it has to use.
const INTERFACE: &str = "STACKLAB_PLUGIN_VERSION";
/// Versions of QEMU whose plugin interface is not that of the one before, with the interface's version, newest first.
/// Versions between them added functions only.
const INTERFACES: [([u32; 2], u32); 4] = [([11, 1], 7), ([9, 1], 3), ([9, 0], 2), ([6, 0], 1)];
/// The newest version of QEMU whose interface is known.
const NEWEST: [u32; 2] = [11, 1];

/// The version of this QEMU, if it can count instructions.
pub fn check_emulator(qemu: &Path) -> Result<String, String> {
    check_plugins(qemu, PLUGIN, |version| interface(version).map(|_| ()))
}

/// The version of this QEMU, if it is a known one that loads plugins, and there is one.
fn check_plugins(
    qemu: &Path,
    plugin: &[u8],
    check_version: impl Fn(&str) -> Result<(), String>,
) -> Result<String, String> {
    if plugin.is_empty() {
        return Err("this build of stacklab has no plugin for QEMU: it needs x86-64 Linux".to_owned());
    }
    let version = version(&run_emulator(qemu, "--version")?)?;
    check_version(&version)?;
    let help = run_emulator(qemu, "--help")?;
    if !help.lines().any(|line| line.starts_with("-plugin")) {
        return Err(format!("QEMU {version} was built without plugins (--enable-plugins)"));
    }
    Ok(version)
}

/// What QEMU prints with this argument.
fn run_emulator(qemu: &Path, argument: &str) -> Result<String, String> {
    let output = Command::new(qemu).arg(argument).stdin(Stdio::null()).output();
    let output = output.map_err(|reason| format!("cannot run {}: {reason}", qemu.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn version(printed: &str) -> Result<String, String> {
    let version = printed.split_once("version ").and_then(|(_, rest)| rest.split([' ', '\n']).next());
    version.filter(|version| numbers(version).is_some()).map(str::to_owned).ok_or_else(|| {
        format!("QEMU prints an unknown version: {:.80}", printed.lines().next().unwrap_or_default())
    })
}

fn numbers(version: &str) -> Option<[u32; 2]> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??])
}

/// The version of the plugin interface that the plugin uses with this version of QEMU.
fn interface(version: &str) -> Result<u32, String> {
    let numbers = numbers(version).unwrap_or_default();
    let known = INTERFACES.iter().find(|(since, _)| *since <= numbers && numbers <= NEWEST);
    known.map(|(_, interface)| *interface).ok_or_else(|| {
        format!(
            "QEMU {version} may have another plugin interface than {}, which can count",
            supported_emulators()
        )
    })
}

/// The versions of QEMU that can count.
pub fn supported_emulators() -> String {
    let [[oldest, _], [major, minor]] = [INTERFACES[INTERFACES.len() - 1].0, NEWEST];
    format!("QEMU {oldest} to {major}.{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn interface_is_that_of_the_version() {
        for (printed, expected) in [
            ("6.0.0", 1),
            ("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", 1),
            ("8.2.2", 1),
            ("9.0.4", 2),
            ("9.1.0", 3),
            ("9.2.1", 3),
            ("10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)", 3),
            ("10.2.0", 3),
            ("11.0.50", 3),
            ("11.1.3", 7),
        ] {
            let version = version(&format!("QEMU emulator version {printed}\nCopyright\n")).unwrap();
            assert_eq!(interface(&version), Ok(expected), "{printed}");
        }
    }

    #[test]
    fn refuses_versions_with_an_unknown_interface() {
        for version in ["4.2.0", "5.2.0", "11.2.0", "12.0.0"] {
            let expected = format!(
                "QEMU {version} may have another plugin interface than QEMU 6 to 11.1, which can count"
            );
            assert_eq!(interface(version), Err(expected));
        }
        for printed in ["QEMU emulator version x\n", "QEMU emulator version 9\n", "QEMU 9.0.0\n", ""] {
            let reason = version(printed).unwrap_err();
            assert!(reason.starts_with("QEMU prints an unknown version"), "{printed}: {reason}");
        }
    }

    #[test]
    fn an_emulator_without_plugins_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let qemu = folder.path().join("qemu");
        std::fs::write(&qemu, "#!/bin/sh\necho QEMU emulator version 7.2.0\n").unwrap();
        std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            check_emulator(&qemu).unwrap_err(),
            "QEMU 7.2.0 was built without plugins (--enable-plugins)"
        );
        assert!(
            check_emulator(Path::new("/nonexistent")).unwrap_err().starts_with("cannot run /nonexistent")
        );
    }
}

//! Whether this machine's QEMU can load the plugin.

use std::path::Path;
use std::process::{Command, Stdio};

/// The plugin, empty in builds for targets that it does not support.
pub(super) const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));
/// Where the plugin finds the version of the interface that it has to use.
pub(super) const INTERFACE: &str = "STACKLAB_PLUGIN_VERSION";
/// Versions of QEMU whose plugin interface is not that of the one before, with the interface's version, newest first.
/// Versions between them added functions only.
const INTERFACES: [([u32; 2], u32); 4] = [([11, 1], 7), ([9, 1], 3), ([9, 0], 2), ([6, 0], 1)];
/// The newest version of QEMU whose interface is known.
const NEWEST: [u32; 2] = [11, 1];

/// The version of this QEMU, if it can count instructions.
///
/// # Errors
/// Why not, in a sentence.
pub fn check_emulator(qemu: &Path) -> Result<String, String> {
    if PLUGIN.is_empty() {
        return Err("this build of stacklab has no plugin for QEMU: it needs x86-64 Linux".to_owned());
    }
    let text = |argument: &str| {
        let output = Command::new(qemu).arg(argument).stdin(Stdio::null()).output();
        let output = output.map_err(|reason| format!("cannot run {}: {reason}", qemu.display()))?;
        Ok::<String, String>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = version(&text("--version")?)?;
    interface(&version)?;
    match text("--help")?.lines().any(|line| line.starts_with("-plugin")) {
        true => Ok(version),
        false => Err(format!("QEMU {version} was built without plugins (--enable-plugins)")),
    }
}

/// The version that QEMU prints.
fn version(printed: &str) -> Result<String, String> {
    let version = printed.split_once("version ").and_then(|(_, rest)| rest.split([' ', '\n']).next());
    version.filter(|version| numbers(version).is_some()).map(str::to_owned).ok_or_else(|| {
        format!("QEMU prints an unknown version: {:.80}", printed.lines().next().unwrap_or_default())
    })
}

/// Major and minor number.
fn numbers(version: &str) -> Option<[u32; 2]> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??])
}

/// The version of the plugin interface that the plugin uses with this version of QEMU.
///
/// # Errors
/// The plugin does not know the interface, in a sentence.
pub(super) fn interface(version: &str) -> Result<u32, String> {
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

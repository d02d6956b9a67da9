//! Whether this machine's QEMU can load the plugin.

use std::path::Path;
use std::process::{Command, Stdio};

/// The plugin, empty in builds for targets that it does not support.
pub(super) const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));
/// The versions of QEMU with version 1 of the plugin interface: from this major version, up to before this one.
const SUPPORTED: std::ops::Range<u32> = 6..9;

/// The version of this QEMU, if it can count instructions.
///
/// # Errors
/// Why not, in a sentence.
pub fn check_emulator(qemu: &Path) -> Result<String, String> {
    if PLUGIN.is_empty() {
        return Err(
            "this build of stacklab has no plugin for QEMU: it needs x86-64 Linux with glibc".to_owned()
        );
    }
    let text = |argument: &str| {
        let output = Command::new(qemu).arg(argument).stdin(Stdio::null()).output();
        let output = output.map_err(|reason| format!("cannot run {}: {reason}", qemu.display()))?;
        Ok::<String, String>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = supported(&text("--version")?)?;
    match text("--help")?.lines().any(|line| line.starts_with("-plugin")) {
        true => Ok(version),
        false => Err(format!("QEMU {version} was built without plugins (--enable-plugins)")),
    }
}

/// The version that QEMU prints, if its plugin interface is the plugin's.
fn supported(printed: &str) -> Result<String, String> {
    let version = printed.split_once("version ").map_or("", |(_, rest)| rest);
    let version = version.split([' ', '\n']).next().unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        None => {
            Err(format!("QEMU prints an unknown version: {:.80}", printed.lines().next().unwrap_or_default()))
        }
        Some(major) if SUPPORTED.contains(&major) => Ok(version.to_owned()),
        Some(_) => Err(format!(
            "QEMU {version} has another plugin interface than version 1, which QEMU {} to {} have",
            SUPPORTED.start,
            SUPPORTED.end - 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn versions_with_another_interface_are_refused() {
        let printed = |version: &str| format!("QEMU emulator version {version} (Debian 1)\nCopyright\n");
        assert_eq!(supported(&printed("7.2.22")), Ok("7.2.22".to_owned()));
        assert_eq!(supported("QEMU emulator version 8.2.0\n"), Ok("8.2.0".to_owned()));
        for (text, why) in [
            (printed("5.2.0"), "QEMU 5.2.0 has another plugin interface"),
            (printed("9.0.1"), "QEMU 9.0.1 has another plugin interface"),
            (printed("x"), "unknown version: QEMU emulator"),
            (String::new(), "unknown version"),
        ] {
            assert!(supported(&text).unwrap_err().contains(why), "{text}");
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

//! gVisor's `runsc`: an installed one, or one that is built with Go. Those of Debian refuse a network on Linux 6.18.

use crate::command::run_slowly;
use crate::image::{Image, cache, is_newest};
use crate::{ImageInfo, Step, describe_failure, run};
use stacklab_testbed::{TestbedError, program_in_path};
use std::fs;
use std::path::Path;
use std::process::Command;

const RUNSC: &str = "runsc";
/// The Go module, at a version of the branch that builds with plain Go. Go checks what it fetches by its checksum
/// database.
const MODULE: &str = "gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237";

/// An installed `runsc`, unless it is too old, else one that is built; `None` if the image that is here is of that one.
pub(super) fn make(
    into: &Path,
    here: Option<&Image>,
    step: &mut Step<'_>,
) -> Result<Option<ImageInfo>, TestbedError> {
    let own = into.join(RUNSC);
    if let Some(installed) = program_in_path(RUNSC) {
        match refuse_old(&installed) {
            Ok(()) => {
                step(&format!("taking {}", installed.display()));
                fs::copy(&installed, &own).map_err(TestbedError::file(&own))?;
                let version = version_of(&own)?;
                let source = installed.display().to_string();
                return Ok(Some(ImageInfo { version, source, jool: None, packed: None }));
            }
            Err(reason) => step(&format!("not taking {}, which is too old: {reason}", installed.display())),
        }
    }
    if is_newest(here, MODULE, None, step) {
        return Ok(None);
    }
    step("building runsc with Go (once, some minutes)");
    let advice = "; install Go 1.21 or newer (https://go.dev/dl, or Debian's golang-go from backports), or runsc itself";
    let mut build = Command::new("go");
    build.args(["install", MODULE]).env("CGO_ENABLED", "0").env("GOBIN", into);
    // A toolchain that is too old fetches the version that the module requires.
    build.env("GOTOOLCHAIN", "auto").env("GOFLAGS", "-modcacherw").env("GOPATH", cache().join("go"));
    run_slowly(build, &format!("build {MODULE}"), advice, "building runsc", step)?;
    let version = version_of(&own)?;
    Ok(Some(ImageInfo { version, source: MODULE.to_owned(), jool: None, packed: None }))
}

/// An error unless a `runsc` has the options that guests are started with.
pub(crate) fn refuse_old(runsc: &Path) -> Result<(), TestbedError> {
    let root = std::env::temp_dir().join(format!("stacklab-runsc-check-{}", std::process::id()));
    let mut list = Command::new(runsc);
    list.arg(format!("--root={}", root.display()));
    list.args(["--platform=systrap", "--overlay2=none", "--net-raw", "list"]);
    let listed = run(list, "try its options", "");
    // Empty, where it was made at all.
    let _ = fs::remove_dir_all(&root);
    listed.map(drop)
}

/// The version that Go has recorded in the program:
/// `mod<tab>gvisor.dev/gvisor<tab>v0.0.0-20260101000000-0123456789ab<tab>h1:..`. Without it, the version that the
/// program reports.
fn version_of(runsc: &Path) -> Result<String, TestbedError> {
    const RECORDED: &[u8] = b"mod\tgvisor.dev/gvisor\tv";
    let bytes = fs::read(runsc).map_err(TestbedError::file(runsc))?;
    if let Some(at) = bytes.windows(RECORDED.len()).position(|window| window == RECORDED) {
        let version = bytes[at + RECORDED.len() - 1..].iter().take_while(|byte| byte.is_ascii_graphic());
        return Ok(version.map(|byte| char::from(*byte)).collect());
    }
    let mut version = Command::new(runsc);
    version.arg("--version");
    let said = run(version, "ask runsc for its version", "")?;
    let first = said.lines().next().unwrap_or_default();
    let known = first.trim_start_matches("runsc version ").trim();
    if known.is_empty() {
        return Err(describe_failure("ask runsc for its version", format!("it says {said:?}"), ""));
    }
    Ok(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn builds_one_version_and_no_moving_one() {
        // Go checks a version's content by its checksum database, and cannot where it stands for another one each day.
        let (_, version) = MODULE.split_once('@').unwrap();
        let parts: Vec<&str> = version.split('-').collect();
        let [release, time, commit] = parts[..] else { panic!("{version}") };
        assert_eq!(release, "v0.0.0");
        assert!(time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit()), "{version}");
        assert!(commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{version}");
    }

    fn write_script(file: &Path, text: &str) {
        fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn refuses_an_installed_one_without_its_platform() {
        let folder = tempfile::tempdir().unwrap();
        let runsc = folder.path().join(RUNSC);
        write_script(&runsc, "echo 'unknown platform: systrap' >&2; exit 128");
        let refused = refuse_old(&runsc).unwrap_err().to_string();
        assert!(refused.contains("unknown platform: systrap"), "{refused}");
        write_script(&runsc, "echo 'ID PID STATUS'");
        refuse_old(&runsc).unwrap();
        write_script(&runsc, "echo 'runsc version 0.0~20240729.0'; echo 'spec: 1.2.0'");
        assert_eq!(version_of(&runsc).unwrap(), "0.0~20240729.0");
    }
}

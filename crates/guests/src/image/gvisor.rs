//! gVisor's `runsc`: the installed program, or one that Go builds from its module.

use crate::image::command::run_slowly;
use crate::image::installed::cache;
use crate::{ImageInfo, Step, run};
use stacklab_testbed::{TestbedError, program_in_path};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Its Go module, at a version of the branch that builds with plain Go. Go checks what it fetches by its checksum
/// database.
const MODULE: &str = "gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237";
const NAME: &str = "runsc";

pub(super) fn make(into: &Path, step: &mut Step<'_>) -> Result<ImageInfo, TestbedError> {
    let own = into.join(NAME);
    if let Some(installed) = program_in_path(NAME) {
        step(&format!("taking {}", installed.display()));
        fs::copy(&installed, &own).map_err(TestbedError::file(&own))?;
        let version = version_of(&own)?;
        return Ok(ImageInfo { version, source: installed.display().to_string(), jool: None });
    }
    step("building runsc with Go (once, some minutes)");
    let advice = "; install Go 1.21 or newer (https://go.dev/dl, or Debian's golang-go from backports), or runsc itself";
    let mut build = Command::new("go");
    build.args(["install", MODULE]).env("CGO_ENABLED", "0").env("GOBIN", into);
    // A toolchain that is too old fetches the version that the module requires.
    build.env("GOTOOLCHAIN", "auto").env("GOFLAGS", "-modcacherw").env("GOPATH", cache().join("go"));
    run_slowly(build, &format!("build {MODULE}"), advice, "building runsc", step)?;
    Ok(ImageInfo { version: version_of(&own)?, source: MODULE.to_owned(), jool: None })
}

/// The version that Go has recorded in the program:
/// `mod<tab>gvisor.dev/gvisor<tab>v0.0.0-20260101000000-0123456789ab<tab>h1:..`. Without it, the version that the
/// program reports.
fn version_of(runsc: &Path) -> Result<String, TestbedError> {
    const RECORDED: &[u8] = b"mod\tgvisor.dev/gvisor\t";
    let bytes = fs::read(runsc).map_err(TestbedError::file(runsc))?;
    if let Some(at) = bytes.windows(RECORDED.len()).position(|window| window == RECORDED) {
        let version = bytes[at + RECORDED.len()..].iter().take_while(|byte| byte.is_ascii_graphic());
        return Ok(version.map(|byte| char::from(*byte)).collect());
    }
    let mut version = Command::new(runsc);
    version.arg("--version");
    let said = run(version, "ask runsc for its version", "")?;
    Ok(said.lines().next().unwrap_or_default().trim_start_matches("runsc version ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_is_built_and_no_moving_one() {
        // Go checks a version's content by its checksum database, and cannot where it stands for another one each day.
        let (_, version) = MODULE.split_once('@').unwrap();
        let parts: Vec<&str> = version.split('-').collect();
        let [release, time, commit] = parts[..] else { panic!("{version}") };
        assert_eq!(release, "v0.0.0");
        assert!(time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit()), "{version}");
        assert!(commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{version}");
    }
}

//! User-mode Linux that is built on this machine from a kernel's source: with all mechanisms, of which Debian's build
//! does not support some, and from any source tree.

use crate::command::{check_programs, first_missing, remove, run_slowly, with_mechanisms};
use crate::image::apt::Apt;
use crate::image::archive::Archive;
use crate::image::cache;
use crate::image::programs::{WIFI_ARCHIVE, pack_jool, pack_wifi};
use crate::{ImageInfo, Step, describe_failure, run};
use stacklab_model::System;
use stacklab_testbed::TestbedError;
use stacklab_testbed::kernel::cpus::allowed;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's stable release. Its Jool package matches its kernel.
const SUITES: &[&str] = &["trixie"];
/// The kernel configuration, in addition to the options that mechanisms need.
const CONFIG: &str = include_str!("uml.config");
const PACKAGE: &str = "linux-source";
/// The image's library that a guest in virtual time has preloaded.
pub(crate) const SEEDED: &str = "getrandom.so";
/// The image's library that every guest has preloaded.
pub(crate) const XSTATE: &str = "xstate.so";
const PRELOADED: [(&str, &str); 2] =
    [(SEEDED, include_str!("getrandom.c")), (XSTATE, include_str!("xstate.c"))];
const MODULES: &str = "modules.cpio";
const PROGRAMS: [&str; 8] = ["make", "gcc", "flex", "bison", "bc", "tar", "xz", "pkg-config"];
const GET_PROGRAMS: &str = "sudo apt-get install --no-install-recommends make gcc libc6-dev flex bison bc tar xz-utils pkg-config libssl-dev";
/// The library with which the build reads the keys that sign the database of radio regulations.
const LIBRARY: &str = "libcrypto";
/// The parts of a kernel's source that user-mode Linux does not use. Their Kconfig and make files are still unpacked.
const LEFT_OUT: [&str; 3] = ["*/drivers/gpu/*.[ch]", "*/sound/*.[ch]", "*/Documentation/*.rst"];

/// Builds it into a folder: `kernel`, `config`, `getrandom.so`, `xstate.so`, `modules.cpio` with Jool (empty for a
/// user's own source), `wifi.cpio` with the programs of a Wi-Fi network, and `lib` (empty, because it needs only this
/// machine's libraries).
pub(super) fn make(
    system: &System,
    source: Option<&Path>,
    into: &Path,
    step: &mut Step<'_>,
) -> Result<ImageInfo, TestbedError> {
    check_programs(&PROGRAMS, LIBRARY, GET_PROGRAMS)?;
    // The compiler runs in another folder than this process.
    let kept = find_absolute(&cache().join("build").join(system.to_string()))?;
    let unpacked = find_absolute(&into.join("unpacked"))?;
    let apt = Apt::open(cache().join("apt").join(PACKAGE), SUITES, step)?;
    pack_wifi(&apt, &unpacked, &into.join(WIFI_ARCHIVE), step)?;
    if let Some(tree) = source {
        let built = Build { tree: find_absolute(tree)?, out: kept };
        let version = built.build(step)?;
        built.compile_preloads(into)?;
        let placed = built.place(into).and_then(|()| write_empty(&into.join(MODULES)));
        placed.and_then(|()| remove(&unpacked)).map_err(TestbedError::file(into))?;
        return Ok(ImageInfo {
            version,
            source: format!("built from {}", tree.display()),
            jool: None,
            packed: None,
        });
    }
    let built = Build { tree: unpacked.join("tree"), out: unpacked.join("build") };
    fs::create_dir_all(&built.tree).map_err(TestbedError::file(&built.tree))?;
    let origin = debians(&apt, &unpacked, &built.tree, step)?;
    let version = built.build(step)?;
    built.place(into).map_err(TestbedError::file(into))?;
    built.compile_preloads(into)?;
    let jool = pack_jool(&apt, &unpacked, &into.join(MODULES), |target| built.make(target), step)?;
    // The first folder takes some GiB and is restored from the package in seconds. The second holds objects compiled
    // from a tree under this name, which another source cannot use.
    for folder in [&unpacked, &kept] {
        remove(folder).map_err(TestbedError::file(folder))?;
    }
    Ok(ImageInfo { version, source: format!("built from {origin}"), jool: Some(jool), packed: None })
}

fn find_absolute(path: &Path) -> Result<PathBuf, TestbedError> {
    std::path::absolute(path).map_err(TestbedError::file(path))
}

fn write_empty(archive: &Path) -> io::Result<()> {
    Archive::create(archive)?.finish().map(drop)
}

fn debians(apt: &Apt, by_way_of: &Path, tree: &Path, step: &mut Step<'_>) -> Result<String, TestbedError> {
    let package = apt.newest(PACKAGE, "")?;
    let version = apt.unpack(&package, by_way_of, step)?;
    let archive = by_way_of.join("usr/src").join(format!("{package}.tar.xz"));
    step("unpacking the source");
    let mut tar = Command::new("tar");
    tar.args(LEFT_OUT.map(|files| format!("--exclude={files}")));
    tar.args(["--strip-components=1", "-xf"]).arg(&archive).arg("-C").arg(tree);
    let attempted = format!("unpack {}", archive.display());
    run_slowly(tar, &attempted, "; see that the disk has 2 GiB of room", "unpacking the source", step)?;
    fs::remove_dir_all(by_way_of.join("usr")).map_err(TestbedError::file(archive))?;
    Ok(format!("{package} {version}"))
}

struct Build {
    tree: PathBuf,
    out: PathBuf,
}

impl Build {
    fn build(&self, step: &mut Step<'_>) -> Result<String, TestbedError> {
        let asked = self.out.join("wanted.config");
        let written = fs::create_dir_all(&self.out).and_then(|()| fs::write(&asked, with_mechanisms(CONFIG)));
        written.map_err(TestbedError::file(&asked))?;
        let mut configure = self.make("allnoconfig");
        configure.env("KCONFIG_ALLCONFIG", &asked);
        let attempted = format!("configure the kernel in {}", self.tree.display());
        run_slowly(configure, &attempted, "", "configuring the kernel", step)?;
        let config = self.out.join(".config");
        let has = fs::read_to_string(&config).map_err(TestbedError::file(&config))?;
        if let Some(missing) = first_missing(CONFIG, &NOT_EVERYWHERE, &has) {
            return Err(describe_failure(
                &attempted,
                format!("it cannot have {missing}"),
                "; take a newer kernel",
            ));
        }
        let release = run(self.make("kernelrelease"), "ask for the kernel's release", "")?.trim().to_owned();
        step(&format!("compiling user-mode Linux {release}, which takes some minutes"));
        let mut compile = self.make("linux");
        compile.arg("modules").arg(format!("-j{}", allowed().len()));
        let attempted = format!("compile the kernel in {}", self.tree.display());
        run_slowly(compile, &attempted, "", &format!("compiling user-mode Linux {release}"), step)?;
        Ok(release)
    }

    fn make(&self, target: &str) -> Command {
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(&self.tree).arg("ARCH=um").arg(format!("O={}", self.out.display()));
        // Remove the variables that an outer `make` passes to its children.
        make.arg(target).env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
        make
    }

    fn place(&self, into: &Path) -> io::Result<()> {
        fs::copy(self.out.join("linux"), into.join("kernel"))?;
        fs::copy(self.out.join(".config"), into.join("config"))?;
        fs::create_dir(into.join("lib"))
    }

    fn compile_preloads(&self, into: &Path) -> Result<(), TestbedError> {
        for (library, text) in PRELOADED {
            let source = self.out.join("preloaded.c");
            fs::write(&source, text).map_err(TestbedError::file(&source))?;
            let mut compile = Command::new("gcc");
            compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(into.join(library)).arg(&source);
            run(compile, &format!("compile {library}"), "")?;
        }
        Ok(())
    }
}

/// Options that some kernels lack in this form: the first depends on the source tree; old kernels are not preemptible
/// as user-mode Linux, and new ones always have the scheduler's settings.
const NOT_EVERYWHERE: [&str; 5] = [
    "CONFIG_LOCALVERSION_AUTO=y",
    "CONFIG_PREEMPT=y",
    "CONFIG_SCHED_DEBUG=y",
    "CONFIG_UML_NET=y",
    "CONFIG_CRYPTO_MANAGER_DISABLE_TESTS=y",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let all = with_mechanisms(CONFIG);
        assert_eq!(first_missing(CONFIG, &NOT_EVERYWHERE, &all), None);
        let without = all.replace("CONFIG_WIREGUARD=y", "# CONFIG_WIREGUARD is not set");
        let missing = first_missing(CONFIG, &NOT_EVERYWHERE, &without);
        assert_eq!(missing.as_deref(), Some("CONFIG_WIREGUARD=y"));
    }
}

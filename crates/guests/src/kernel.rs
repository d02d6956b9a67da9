//! Kernels for emulated guests that count instructions: Debian's, a file, or one that is compiled here from a source
//! tree, out of tree, with a fixed small configuration.

use crate::Image;
use crate::command::{Step, check_programs, first_missing, with_mechanisms};
use crate::image::{cache, no_image};
use sha2::{Digest, Sha256};
use stacklab_model::System;
use stacklab_testbed::kernel::cpus::allowed;
use stacklab_testbed::{TestbedError, first_line, program_in_path};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub use crate::command::{first_error, run_interruptibly};

/// The configuration, in addition to the options that mechanisms need.
const CONFIG: &str = include_str!("kernel/counted.config");
/// The line of the configuration after which its second part begins: options that not every version has.
const SECOND_PART: &str = "# The second part.";
const PROGRAMS: [&str; 6] = ["make", "gcc", "flex", "bison", "bc", "pkg-config"];
const LIBRARY: &str = "libelf";
const GET_PROGRAMS: &str =
    "sudo apt-get install --no-install-recommends make gcc libc6-dev flex bison bc pkg-config libelf-dev";
/// A file that every Linux tree for x86-64 has.
pub const MAKEFILE: &str = "arch/x86/Makefile";
/// What a compiled kernel says about its build: the same for each build, because its length would show in counts.
const IDENTITY: [(&str, &str); 5] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 2026"),
    ("KBUILD_BUILD_USER", "stacklab"),
    ("KBUILD_BUILD_HOST", "stacklab"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("LOCALVERSION", ""),
];
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const NO_SPACE: &str = "No space left on device";

/// Why a kernel was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// This source does not compile with the configuration; another version may.
    #[error("{0}")]
    Source(String),
    /// This machine cannot compile kernels, or there is nothing to compile.
    #[error(transparent)]
    Machine(#[from] TestbedError),
    /// The user interrupted.
    #[error("interrupted; what was compiled so far is kept")]
    Interrupted,
}

/// A kernel to boot in an emulated machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its file, a bzImage.
    pub file: PathBuf,
    /// An archive of its modules.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// The kernel of a system with an image here. An error says how to get it.
    pub fn of(system: &System) -> Result<Self, TestbedError> {
        if !matches!(system, System::Linux(_)) {
            return Err(TestbedError(format!(
                "{system} is not a kernel for a virtual machine: name one such as linux-6.1"
            )));
        }
        let image = Image::to_boot(system)?;
        let kernel = image.file("kernel");
        kernel.exists().then_some(()).ok_or_else(|| no_image(system, "it has no kernel".to_owned()))?;
        Ok(Kernel { file: kernel, modules: Some(image.file("modules.cpio")) })
    }

    /// A file that has all of its drivers built in. It must be a bzImage.
    pub fn in_file(path: &Path) -> Result<Self, TestbedError> {
        // The boot protocol's signature (Documentation/arch/x86/boot.rst).
        let mut signature = [0; 4];
        let mut file = open_at_once(path).map_err(TestbedError::file(path))?;
        let read = file.seek(SeekFrom::Start(0x202)).and_then(|_| file.read_exact(&mut signature));
        match (read, &signature) {
            (Ok(()), b"HdrS") => Ok(Kernel { file: path.to_owned(), modules: None }),
            _ => Err(TestbedError(format!(
                "{} is not a kernel for x86-64: name a bzImage, such as arch/x86/boot/bzImage",
                path.display()
            ))),
        }
    }
}

/// Opens a file that a user names to read it. A pipe, whose opening would wait for its writer, is opened too: it fails
/// at its first use.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)
}

/// The folder in the cache for what is built from a folder with this path.
pub fn built_in(tree: &Path) -> PathBuf {
    let tree = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
    let name = tree.file_name().map_or("root".into(), |name| name.to_string_lossy().into_owned());
    cache().join("kernels").join(format!("{name}-{}", &digest([tree.as_os_str().as_encoded_bytes()])[..12]))
}

/// Changes when kernels of one source would be compiled in another way: configuration, compiler, its options.
pub fn kernel_key() -> String {
    let compiler = program_in_path("gcc").map(|gcc| first_line(&gcc, &["--version".to_owned()]));
    let flags = std::env::var_os("KCFLAGS").unwrap_or_default();
    digest([wanted().as_bytes(), compiler.unwrap_or_default().as_bytes(), flags.as_encoded_bytes()])
}

fn digest<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a folder is the source of Linux.
pub fn check_source(tree: &Path) -> Result<(), TestbedError> {
    match tree.join(MAKEFILE).exists() {
        true => Ok(()),
        false => {
            Err(TestbedError(format!("{} is not a Linux source tree: it has no {MAKEFILE}", tree.display())))
        }
    }
}

/// Compiles the kernel of a source tree, which is not modified, and copies it to a file. Objects stay in a folder for
/// the next build; a second build in that folder waits. Returns the kernel's release.
pub fn build_kernel(
    tree: &Path,
    folder: &Path,
    into: &Path,
    step: &mut Step<'_>,
    interrupted: &AtomicBool,
) -> Result<String, BuildError> {
    let tree = &tree.canonicalize().map_err(TestbedError::file(tree))?;
    check_source(tree)?;
    check_programs(&PROGRAMS, LIBRARY, GET_PROGRAMS)?;
    build_tree(tree, folder, into, step, interrupted)
}

/// The same, of a folder that is a source tree, on a machine that has the programs.
fn build_tree(
    tree: &Path,
    folder: &Path,
    into: &Path,
    step: &mut Step<'_>,
    interrupted: &AtomicBool,
) -> Result<String, BuildError> {
    let out = std::path::absolute(folder.join("out")).map_err(TestbedError::file(folder))?;
    fs::create_dir_all(&out).map_err(TestbedError::file(&out))?;
    let lock = lock(&folder.join("lock"), step, interrupted)?;
    let mut build = Build { tree, out: &out, messages: folder.join("messages"), lock, step, interrupted };
    let asked = out.join("wanted.config");
    if fs::read_to_string(&asked).ok().as_deref() != Some(&wanted()) {
        fs::write(&asked, wanted()).map_err(TestbedError::file(&asked))?;
    }
    build.make("allnoconfig", "configure", &format!("KCONFIG_ALLCONFIG={}", asked.display()))?;
    let config = out.join(".config");
    let has = fs::read_to_string(&config).map_err(TestbedError::file(&config))?;
    if let Some(missing) = missing(&has) {
        return Err(BuildError::Source(format!("the kernel in {} cannot have {missing}", tree.display())));
    }
    build.make("bzImage", "compile", &format!("-j{}", allowed().len()))?;
    let release = out.join("include/config/kernel.release");
    let release = fs::read_to_string(&release).map_err(TestbedError::file(&release))?;
    fs::copy(out.join("arch/x86/boot/bzImage"), into).map_err(TestbedError::file(into))?;
    Ok(release.trim().to_owned())
}

/// Waits for the lock of a file: held as long as the returned file is open here or in a child.
pub fn lock(path: &Path, step: &mut Step<'_>, interrupted: &AtomicBool) -> Result<File, BuildError> {
    let open = File::options().create(true).truncate(false).read(true).write(true).open(path);
    let file = open.map_err(TestbedError::file(path))?;
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(reason)) => return Err(TestbedError::file(path)(reason).into()),
            Err(TryLockError::WouldBlock) if interrupted.load(Ordering::Relaxed) => {
                return Err(BuildError::Interrupted);
            }
            Err(TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut said, true) {
                    step("waiting for another build of this tree");
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

struct Build<'a, 'b> {
    tree: &'a Path,
    out: &'a Path,
    messages: PathBuf,
    lock: File,
    step: &'a mut Step<'b>,
    interrupted: &'a AtomicBool,
}

impl Build<'_, '_> {
    fn make(&mut self, target: &str, verb: &str, argument: &str) -> Result<(), BuildError> {
        let messages = &self.messages;
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(self.tree).arg("ARCH=x86_64").arg(format!("O={}", self.out.display()));
        make.args([target, argument]).envs(IDENTITY);
        for outer in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS"] {
            make.env_remove(outer);
        }
        // Whatever make has started holds the lock, even if this process is killed.
        make.stdin(self.lock.try_clone().map_err(TestbedError::file(messages))?);
        let step = &mut self.step;
        let done = run_interruptibly(make, messages, self.interrupted, &mut |seconds| {
            step(&format!("still compiling, {seconds} s so far"));
        });
        match done.map_err(TestbedError::file(messages))? {
            Some(true) => Ok(()),
            None => Err(BuildError::Interrupted),
            Some(false) if fs::read_to_string(messages).unwrap_or_default().contains(NO_SPACE) => {
                let _ = fs::remove_dir_all(self.out);
                let reason = format!("cannot build a kernel in {}: the disk is full", self.out.display());
                Err(TestbedError(reason).into())
            }
            Some(false) => Err(BuildError::Source(format!(
                "cannot {verb} the kernel in {}: {} (all messages: {})",
                self.tree.display(),
                first_error(messages),
                messages.display()
            ))),
        }
    }
}

/// The first option of the configuration's first part, or of a mechanism, that a kernel's configuration lacks.
fn missing(has: &str) -> Option<String> {
    let (first, _) = CONFIG.split_once(SECOND_PART).unwrap_or((CONFIG, ""));
    first_missing(first, &[], has)
}

fn wanted() -> String {
    with_mechanisms(CONFIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_second_part_may_be_missing() {
        assert!(CONFIG.contains(SECOND_PART));
        assert_eq!(missing(&wanted()), None);
        assert_eq!(missing(&wanted().replace("CONFIG_HZ_250=y", "# none")), None);
        for option in ["CONFIG_IPV6=y", "CONFIG_WIREGUARD=y"] {
            assert_eq!(missing(&wanted().replace(option, "# none")).as_deref(), Some(option));
        }
    }

    #[test]
    fn only_source_trees_are_built() {
        let folder = tempfile::tempdir().unwrap();
        let objects = folder.path().join("b");
        let into = folder.path().join("k");
        let never = AtomicBool::new(false);
        let built = build_kernel(folder.path(), &objects, &into, &mut |_| {}, &never);
        let reason = built.unwrap_err().to_string();
        assert!(reason.ends_with("is not a Linux source tree: it has no arch/x86/Makefile"), "{reason}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }

    /// The tree's Makefile calls the shell alone: the test needs `make`, and not what real kernels are built with.
    #[test]
    fn gives_the_error_of_a_tree_that_does_not_compile() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tree")).unwrap();
        let all = "allnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) $(O)/.config\nbzImage:\n";
        let makefile = format!("{all}\t@echo 'net/a.c:7:1: error: no such thing' >&2; exit 1\n");
        let reason = build_with(&makefile, folder.path()).unwrap_err();
        assert!(
            matches!(&reason, BuildError::Source(text) if text.contains("net/a.c:7:1: error: no such")),
            "{reason}"
        );
        let makefile = format!("{all}\t@echo 'as: No space left on device' >&2; exit 1\n");
        let reason = build_with(&makefile, folder.path()).unwrap_err();
        assert!(
            matches!(reason, BuildError::Machine(_)) && reason.to_string().contains("disk is full"),
            "{reason}"
        );
        assert!(!folder.path().join("b/out").exists());
        let makefile = "allnoconfig:\n\techo CONFIG_INET=y > $(O)/.config\n";
        let reason = build_with(makefile, folder.path()).unwrap_err();
        assert!(reason.to_string().contains("cannot have CONFIG_EXPERT=y"));
        let makefile = format!(
            "{all}\tmkdir -p $(O)/arch/x86/boot $(O)/include/config; echo $(LOCALVERSION)6.1 > \
             $(O)/include/config/kernel.release; echo $(KBUILD_BUILD_HOST) > $(O)/arch/x86/boot/bzImage\n"
        );
        assert_eq!(build_with(&makefile, folder.path()).unwrap(), "6.1");
        assert_eq!(fs::read_to_string(folder.path().join("kernel")).unwrap(), "stacklab\n");
    }

    /// Builds the folder's `tree` with this Makefile.
    fn build_with(makefile: &str, folder: &Path) -> Result<String, BuildError> {
        let tree = folder.join("tree");
        fs::write(tree.join("Makefile"), makefile).unwrap();
        let never = AtomicBool::new(false);
        build_tree(&tree, &folder.join("b"), &folder.join("kernel"), &mut |_| {}, &never)
    }

    #[test]
    fn files_that_are_not_kernels_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bzImage");
        fs::write(&path, "ELF").unwrap();
        assert!(Kernel::in_file(&path).unwrap_err().to_string().contains("is not a kernel for x86-64"));
        fs::write(&path, [vec![0; 0x202], b"HdrS".to_vec()].concat()).unwrap();
        assert_eq!(Kernel::in_file(&path).unwrap(), Kernel { file: path.clone(), modules: None });
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Kernel::in_file(&pipe).unwrap_err().to_string().contains("is not a kernel for x86-64"));
        let one = built_in(Path::new("/a/linux"));
        let other = built_in(Path::new("/b/linux"));
        assert!(one != other && one.file_name().unwrap().to_string_lossy().starts_with("linux-"));
    }
}

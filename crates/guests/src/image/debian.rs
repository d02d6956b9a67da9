//! Debian's kernels: the newest one of a series, in the cloud flavour for virtual machines, and its build of user-mode
//! Linux, together with the C library that it needs, which is newer than that of most machines. Both with the modules
//! that guests load, each after its dependencies.

use crate::image::apt::Apt;
use crate::image::archive::Archive;
use crate::image::{Image, cache, files_below, is_newest};
use crate::{ImageInfo, Step, describe_failure};
use stacklab_model::Mechanism;
use stacklab_testbed::mechanism::offload;
use stacklab_testbed::{LOADER, TestbedError};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fetches the newest kernel of a series into a folder: `kernel` and `modules.cpio`.
/// `None` if the image that is here is of the newest one.
pub(crate) fn make_kernel(
    series: &str,
    suites: &[&str],
    into: &Path,
    here: Option<&Image>,
    step: &mut Step<'_>,
) -> Result<Option<ImageInfo>, TestbedError> {
    let apt = Apt::open(cache().join("apt").join(format!("linux-{series}")), suites, step)?;
    let unpacked = into.join("unpacked");
    let image = apt.newest(&format!("linux-image-{series}"), "-cloud-amd64")?;
    let source = format!("{image} {}", apt.version(&image)?);
    let packed = Some(wanted().join(" "));
    if is_newest(here, &source, packed.as_deref(), step) {
        return Ok(None);
    }
    apt.unpack(&image, &unpacked, step)?;
    let step_failed =
        |what: &str, reason: io::Error| describe_failure(&format!("{what} of {image}"), reason, "");
    // Newer kernels have their kernel and modules in separate packages, on which the package of this name depends.
    if kernel_in(&unpacked).is_err() {
        for part in ["linux-binary", "linux-modules"] {
            apt.unpack(&image.replacen("linux-image", part, 1), &unpacked, step)?;
        }
    }
    let (kernel, release) = kernel_in(&unpacked).map_err(|error| step_failed("find the kernel", error))?;
    step("packing the modules that guests load");
    pack_modules(&unpacked, &into.join("modules.cpio"))
        .map_err(|error| step_failed("pack the modules", error))?;
    let placed = fs::rename(&kernel, into.join("kernel")).and_then(|()| fs::remove_dir_all(&unpacked));
    placed.map_err(|error| step_failed("keep the kernel", error))?;
    Ok(Some(ImageInfo { version: release, source, jool: None, packed }))
}

/// Finds the kernel and its release: `boot/vmlinuz-RELEASE`, or `usr/lib/modules/RELEASE/vmlinuz`.
fn kernel_in(unpacked: &Path) -> io::Result<(PathBuf, String)> {
    for entry in fs::read_dir(unpacked.join("boot")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(release) = name.strip_prefix("vmlinuz-") {
            return Ok((entry.path(), release.to_owned()));
        }
    }
    for entry in fs::read_dir(unpacked.join("usr/lib/modules")).into_iter().flatten().flatten() {
        let kernel = entry.path().join("vmlinuz");
        if kernel.exists() {
            return Ok((kernel, entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "there is no vmlinuz"))
}

/// Writes the wanted modules as an archive for the initramfs. Their names give the order of loading.
pub(crate) fn pack_modules(unpacked: &Path, archive: &Path) -> io::Result<()> {
    let folders =
        ["lib/modules", "usr/lib/modules", "usr/lib/uml/modules"].map(|folder| unpacked.join(folder));
    let folder = folders.into_iter().find(|folder| folder.exists());
    let folder = folder.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no lib/modules"))?;
    let mut out = Archive::create(archive)?;
    modules_into(in_order(&find(&folder)?, &wanted())?, &mut out)?;
    out.finish().map(drop)
}

const UML_SUITES: &[&str] = &["forky"];
const UML_PACKAGE: &str = "user-mode-linux";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// The loader that the kernel file names, and its replacement: a loader in the folder in which the kernel is started.
const NAMED: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
const OWN: &[u8] = b"./ld.so\0";

/// `None` if the image that is here is of the newest one.
pub(crate) fn make_uml(
    into: &Path,
    here: Option<&Image>,
    step: &mut Step<'_>,
) -> Result<Option<ImageInfo>, TestbedError> {
    let apt = Apt::open(cache().join("apt").join("uml"), UML_SUITES, step)?;
    let unpacked = into.join("unpacked");
    let version = apt.version(UML_PACKAGE)?;
    let source = format!("{UML_PACKAGE} {version}");
    let packed = Some(wanted().join(" "));
    if is_newest(here, &source, packed.as_deref(), step) {
        return Ok(None);
    }
    apt.unpack(UML_PACKAGE, &unpacked, step)?;
    apt.unpack("libc6", &unpacked, step)?;
    let attempted = format!("find the kernel of {UML_PACKAGE} {version}");
    place(&unpacked, into).map_err(|reason| describe_failure(&attempted, reason, ""))?;
    // 7.2um1+b1: the kernel's version, then Debian's.
    let release = version.split("um").next().unwrap_or(&version).to_owned();
    Ok(Some(ImageInfo { version: release, source, jool: None, packed }))
}

fn place(unpacked: &Path, into: &Path) -> io::Result<()> {
    let kernels = ["usr/bin/linux.uml", "usr/bin/linux"].map(|path| unpacked.join(path));
    let kernel = kernels.iter().find(|path| path.exists());
    let kernel =
        kernel.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no usr/bin/linux.uml"))?;
    let about = kernel.metadata()?.permissions();
    let own = into.join("kernel");
    fs::write(&own, with_own_loader(fs::read(kernel)?)?)?;
    fs::set_permissions(&own, about)?;
    let folder = into.join("lib");
    fs::create_dir_all(&folder)?;
    let libraries = fs::read_dir(unpacked.join(LIBRARIES))?.flatten().map(|entry| entry.path());
    for library in libraries.filter(|path| path.is_file()) {
        let name = library.file_name().unwrap_or_default();
        fs::copy(&library, folder.join(if name == LOADER { "ld.so".as_ref() } else { name }))?;
    }
    pack_modules(unpacked, &into.join("modules.cpio"))?;
    fs::remove_dir_all(unpacked)
}

/// The kernel file, changed to use the bundled loader, so that it also finds that loader when it restarts itself.
fn with_own_loader(mut file: Vec<u8>) -> io::Result<Vec<u8>> {
    let at = file.windows(NAMED.len()).position(|window| window == NAMED);
    let at = at.ok_or_else(|| io::Error::other("the kernel file names no loader that is known"))?;
    file[at..at + OWN.len()].copy_from_slice(OWN);
    Ok(file)
}

pub(crate) fn wanted() -> Vec<&'static str> {
    let devices = Mechanism::devices();
    OF_LINKS.iter().copied().chain(devices.iter().flat_map(|(_, device)| device.modules).copied()).collect()
}

const OF_LINKS: &[&str] = &[
    "virtio_pci",
    "virtio_net",
    "virtio_console",
    "virtio_rng",
    "veth",
    "bridge",
    "macvlan",
    "tun",
    "sch_tbf",
    "sch_netem",
    "sch_htb",
    "sch_fq",
    "tcp_bbr",
    "nf_tables",
    "nft_chain_nat",
    "nft_ct",
    "nft_masq",
    "nft_nat",
    "nft_numgen",
    "nft_ct",
    "nft_objref",
    "nf_conntrack_netlink",
    offload::MODULE,
    "nf_flow_table_inet",
    "fou",
    "fou6",
    "xfrm_user",
    "gcm",
    "ghash_generic",
    "ctr",
    "seqiv",
    "aes_generic",
    "hmac",
    "sha512_generic",
    "jitterentropy_rng",
    "drbg",
];

pub(crate) fn find(folder: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut modules = BTreeMap::new();
    for path in files_below(folder)? {
        let file = path.file_name().and_then(|file| file.to_str());
        if let Some((name, _)) = file.and_then(|file| file.split_once(".ko")) {
            modules.insert(same(name), path);
        }
    }
    Ok(modules)
}

/// A module's name in one form: `-` and `_` are interchangeable in it.
fn same(name: &str) -> String {
    name.replace('-', "_")
}

/// The wanted modules and all their dependencies, decompressed, each after its dependencies.
pub(crate) fn in_order(
    found: &BTreeMap<String, PathBuf>,
    wanted: &[&str],
) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut ordered = Vec::new();
    for name in wanted {
        add(&same(name), found, &mut ordered)?;
    }
    Ok(ordered)
}

/// Adds modules to an archive for the initramfs. Their names give the order of loading.
pub(crate) fn modules_into<W: Write>(
    modules: Vec<(String, Vec<u8>)>,
    out: &mut Archive<W>,
) -> io::Result<()> {
    modules
        .into_iter()
        .enumerate()
        .try_for_each(|(number, (name, module))| out.file(&format!("modules/{number:03}-{name}.ko"), &module))
}

fn add(
    name: &str,
    found: &BTreeMap<String, PathBuf>,
    ordered: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    if ordered.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let Some(path) = found.get(name) else { return Ok(()) };
    let module = read(path)?;
    for needed in depends(&module) {
        add(&needed, found, ordered)?;
    }
    ordered.push((name.to_owned(), module));
    Ok(())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let tool = match path.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(path),
    };
    let unpacked = Command::new(tool).args(["-dc"]).arg(path).output();
    let unpacked = unpacked.map_err(|reason| io::Error::new(reason.kind(), format!("{tool}: {reason}")))?;
    if unpacked.status.success() {
        return Ok(unpacked.stdout);
    }
    Err(io::Error::other(format!("{tool} {}: {}", path.display(), String::from_utf8_lossy(&unpacked.stderr))))
}

/// The names after `depends=` in the module's description.
pub(crate) fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let rest = &module[at + KEY.len()..];
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let names = String::from_utf8_lossy(&rest[..end]).into_owned();
    names.split(',').filter(|name| !name.is_empty()).map(same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_in_either_place_with_its_release() {
        let folder = tempfile::tempdir().unwrap();
        assert!(kernel_in(folder.path()).is_err());
        let beside = folder.path().join("usr/lib/modules/7.2.12+deb14-cloud-amd64");
        fs::create_dir_all(&beside).unwrap();
        assert!(kernel_in(folder.path()).is_err(), "modules are no kernel");
        fs::write(beside.join("vmlinuz"), "").unwrap();
        let (path, release) = kernel_in(folder.path()).unwrap();
        assert_eq!((path, release.as_str()), (beside.join("vmlinuz"), "7.2.12+deb14-cloud-amd64"));
        let boot = folder.path().join("boot");
        fs::create_dir_all(&boot).unwrap();
        fs::write(boot.join("vmlinuz-6.1.0-1-cloud-amd64"), "").unwrap();
        assert_eq!(kernel_in(folder.path()).unwrap().1, "6.1.0-1-cloud-amd64");
    }

    #[test]
    fn the_loader_is_named_anew_and_nothing_moves() {
        let file = [b"\x7fELF..", NAMED, b"rest"].concat();
        let own = with_own_loader(file.clone()).unwrap();
        assert_eq!(own.len(), file.len());
        assert!(own.starts_with(b"\x7fELF.../ld.so\0") && own.ends_with(b"\0rest"));
        assert!(with_own_loader(b"static".to_vec()).is_err());
    }

    #[test]
    fn modules_come_after_what_they_need_each_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("net")).unwrap();
        for (name, needs) in [
            ("sit.ko", "ip_tunnel,tunnel4"),
            ("ip_tunnel.ko", ""),
            ("tunnel4.ko", "xfrm-core"),
            ("xfrm-core.ko", ""),
            ("ip-gre.ko", "ip_tunnel"),
        ] {
            let path = folder.path().join("net").join(name);
            fs::write(path, [b"x\0depends=", needs.as_bytes(), b"\0name=y\0"].concat()).unwrap();
        }
        let found = find(folder.path()).unwrap();
        let ordered = in_order(&found, &["sit", "ip_gre", "unknown"]).unwrap();
        let names: Vec<&str> = ordered.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ip_tunnel", "xfrm_core", "tunnel4", "sit", "ip_gre"]);
    }
}

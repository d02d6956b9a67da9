//! The modules that a guest loads, each after its dependencies.

use crate::image::cpio::Archive;
use crate::image::installed::files_below;
use stacklab_model::Mechanism;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules that guests need, unless a kernel has them built in or does not have them.
pub(super) fn wanted() -> Vec<&'static str> {
    let devices = Mechanism::devices();
    OF_LINKS.iter().copied().chain(devices.iter().map(|(_, device)| device.module)).collect()
}

const OF_LINKS: &[&str] = &[
    "virtio_pci",
    "virtio_net",
    "virtio_console",
    "virtio_rng",
    "veth",
    "bridge",
    "tun",
    "sch_tbf",
    "sch_netem",
    "sch_htb",
    "sch_fq",
    "tcp_bbr",
    "nf_tables",
];

pub(super) fn find(folder: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let named = |path: PathBuf| {
        let (name, _) = path.file_name()?.to_str()?.split_once(".ko")?;
        Some((same(name), path))
    };
    Ok(files_below(folder)?.into_iter().filter_map(named).collect())
}

/// A module's name in one form: `-` and `_` are interchangeable in it.
fn same(name: &str) -> String {
    name.replace('-', "_")
}

/// The wanted modules and all their dependencies, decompressed, each after its dependencies.
pub(super) fn in_order(
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
pub(super) fn pack<W: Write>(modules: Vec<(String, Vec<u8>)>, out: &mut Archive<W>) -> io::Result<()> {
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
    // A built-in module has no file.
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
    fn modules_come_after_what_they_need_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, needs: &str| {
            fs::create_dir_all(folder.path().join("net")).unwrap();
            let path = folder.path().join("net").join(name);
            fs::write(path, [b"x\0depends=", needs.as_bytes(), b"\0name=y\0"].concat()).unwrap();
        };
        write("sit.ko", "ip_tunnel,tunnel4");
        write("ip_tunnel.ko", "");
        write("tunnel4.ko", "xfrm-core");
        write("xfrm-core.ko", "");
        write("ip-gre.ko", "ip_tunnel");
        let found = find(folder.path()).unwrap();
        let ordered = in_order(&found, &["sit", "ip_gre", "unknown"]).unwrap();
        let names: Vec<&str> = ordered.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ip_tunnel", "xfrm_core", "tunnel4", "sit", "ip_gre"]);
    }
}

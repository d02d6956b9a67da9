//! Builds the plugin for QEMU (src/exact/sys/plugin.rs), a shared library that the program contains. QEMU is linked
//! with glibc, so the plugin of another target is empty, and the program says so when it should count.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const SOURCE: &str = "src/exact/sys/plugin.rs";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=build.rs");
    let set = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let plugin = Path::new(&set("OUT_DIR")).join("plugin.so");
    let target = set("TARGET");
    if target != "x86_64-unknown-linux-gnu" {
        fs::write(plugin, "").expect("cargo's own folder can be written to");
        return;
    }
    let mut rustc = Command::new(set("RUSTC"));
    rustc.args(["--edition", "2024", "--crate-name", "stacklab_plugin", "--crate-type", "cdylib"]);
    rustc.args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols", "--target", &target]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let status = rustc.arg("-o").arg(plugin).arg(SOURCE).status();
    assert!(status.is_ok_and(|status| status.success()), "the plugin for QEMU does not compile");
}

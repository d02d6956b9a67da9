//! Builds the plugins for QEMU (src/exact/sys), shared libraries that the program contains. QEMU is linked with glibc,
//! whatever this program is linked with. The plugins are empty for other systems than x86-64 Linux, and the program
//! says so when it should count.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// For machines, and for programs.
const PLUGINS: [&str; 2] = ["plugin", "user_plugin"];
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/exact/sys");
    for name in PLUGINS {
        build(name);
    }
}

fn build(name: &str) {
    let source = format!("src/exact/sys/{name}.rs");
    let plugin = Path::new(&read_variable("OUT_DIR")).join(format!("{name}.so"));
    fs::write(&plugin, "").expect("cargo's own folder can be written to");
    if [read_variable("CARGO_CFG_TARGET_ARCH"), read_variable("CARGO_CFG_TARGET_OS")] != ["x86_64", "linux"] {
        return;
    }
    let is_target = read_variable("TARGET") == TARGET;
    let mut rustc = Command::new(read_variable("RUSTC"));
    rustc.args(["--edition", "2024", "--crate-name", "stacklab_plugin", "--crate-type", "cdylib"]);
    rustc.args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols", "--target", TARGET]);
    if let Some(linker) = env::var("RUSTC_LINKER").ok().filter(|_| is_target) {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let status = rustc.arg("-o").arg(&plugin).arg(&source).status();
    if !status.is_ok_and(|status| status.success()) {
        assert!(!is_target, "the plugin for QEMU does not compile");
        println!(
            "cargo:warning=explain --exact will not work: rustc cannot build the plugin for QEMU for {TARGET}"
        );
    }
}

fn read_variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

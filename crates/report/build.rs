//! Takes the built front end into the program, where it was built (scripts/build-web): `page` leads to web/dist, and a
//! published crate contains it. Without it the program compiles and says at run time that it has no page.

use std::path::Path;
use std::{env, fs};

fn main() {
    let dist =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is")).join("page");
    println!("cargo:rerun-if-changed={}", dist.display());
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").expect("cargo says where to write");
    let names = ["page.js", "page.css", "page.hashes"];
    let files = names.map(|name| fs::read_to_string(dist.join(name)).unwrap_or_default());
    // All of it or nothing.
    let whole = files.iter().all(|file| !file.is_empty());
    if !whole && env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!(
            "cargo:warning=the program will have no web page: run scripts/build-web before (it needs Node.js)"
        );
    }
    for (name, text) in names.iter().zip(&files) {
        let text = if whole { text.as_str() } else { "" };
        fs::write(Path::new(&out).join(name), text).expect("cargo's own folder can be written to");
    }
}

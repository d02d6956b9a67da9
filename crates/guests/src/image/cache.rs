//! The folder of images.

use stacklab_model::System;
use std::path::PathBuf;

/// The folder of images and their sources: `STACKLAB_CACHE`, or `stacklab` in the user's cache folder.
pub fn cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || named("HOME").unwrap_or_else(|| PathBuf::from("/var/cache")).join(".cache");
    named("STACKLAB_CACHE").unwrap_or_else(|| named("XDG_CACHE_HOME").unwrap_or_else(home).join("stacklab"))
}

/// The folder of a system's image.
pub(crate) fn folder_of(system: &System) -> PathBuf {
    cache().join("images").join(system.to_string())
}

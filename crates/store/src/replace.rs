//! Writes whole files, or none.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
use std::io::{self, Write};
use std::path::Path;

/// Writes a whole file, which is on the disk when this returns, or leaves the one that is there.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Symbolic links are followed, as for any write.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&path).ok();
    let name = match (path.file_name(), &before) {
        // A terminal or a pipe cannot be replaced, so it is written directly.
        (_, Some(data)) if !data.is_file() => return fs::write(&path, bytes),
        (None, _) => return fs::write(&path, bytes),
        (Some(name), _) => name,
    };
    let mut part = OsString::from(".");
    part.push(name);
    part.push(".part");
    let part = path.with_file_name(part);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        if let Some(before) = before {
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&part, &path)
    });
    if written.is_err() {
        // The error above is the relevant one.
        let _ = fs::remove_file(&part);
    }
    written?;
    // Its name, too.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot, and some folders may be written to and not read.
        Err(error) if ![InvalidInput, Unsupported, PermissionDenied].contains(&error.kind()) => Err(error),
        _ => Ok(()),
    }
}

//! Writes whole files, or none.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::Path;

/// Writes a whole file, which is on the disk when this returns, or leaves the one that is there.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

/// The same with what is written by and by.
///
/// # Errors
/// Those of writing the file, and of `write`.
pub fn replace_with<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    // Symbolic links are followed, as for any write.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&path).ok();
    let is_replaced = before.as_ref().is_none_or(Metadata::is_file);
    let Some(name) = path.file_name().filter(|_| is_replaced) else {
        // A terminal or a pipe cannot be replaced, so it is written directly.
        let mut file = BufWriter::new(File::create(&path)?);
        write(&mut file)?;
        return Ok(file.flush()?);
    };
    let mut part = OsString::from(".");
    part.push(name);
    part.push(".part");
    let part = path.with_file_name(part);
    let written = write_part(&part, before, write).and_then(|()| Ok(fs::rename(&part, &path)?));
    if written.is_err() {
        // The error above is the relevant one.
        let _ = fs::remove_file(&part);
    }
    written?;
    // Its name, too.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot, and some folders may be written to and not read.
        Err(error) if ![InvalidInput, Unsupported, PermissionDenied].contains(&error.kind()) => {
            Err(error.into())
        }
        _ => Ok(()),
    }
}

fn write_part<E: From<io::Error>>(
    part: &Path,
    before: Option<Metadata>,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let mut file = BufWriter::new(File::create(part)?);
    write(&mut file)?;
    let file = file.into_inner().map_err(IntoInnerError::into_error)?;
    if let Some(before) = before {
        file.set_permissions(before.permissions())?;
    }
    Ok(file.sync_all()?)
}

//! The files of a database: what they are, before SQLite opens any of them, and who holds them.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// What SQLite adds to a database's name for the files that it opens by itself.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];
/// How long a lock is waited for: the system releases that of a killed program when its last thread has ended.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);

/// Refuses a database whose file, or one of those that SQLite opens beside it, is not a regular file: opening a pipe
/// waits without end, and a device may have side effects. The reason names the file. Missing files are left to SQLite.
pub fn check_files(path: &Path) -> Result<(), String> {
    // SQLite follows links to the database, and has the other files beside the real one. It follows no link to those.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real.is_dir() {
        return Err(format!("{} is a folder: name a record in it", path.display()));
    }
    check_regular(&real, std::fs::metadata(&real))?;
    for ending in COMPANIONS {
        let companion = beside(&real, ending);
        check_regular(&companion, std::fs::symlink_metadata(&companion))?;
    }
    Ok(())
}

fn check_regular(path: &Path, found: io::Result<std::fs::Metadata>) -> Result<(), String> {
    match found {
        Ok(data) if !data.is_file() => {
            Err(format!("{} is not a regular file: move it away, and look who made it", path.display()))
        }
        Err(reason) if !matches!(reason.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(format!("could not look at {}: {reason}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The path of a file that SQLite has beside a database.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Locks a file for this program alone, until it is closed. A program that was killed may hold it for a moment.
pub fn lock_alone(file: &File) -> Result<(), TryLockError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_TIMEOUT => thread::sleep(POLL),
            done => return done,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    fn make_fifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stacklab");
        check_files(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        let link = folder.path().join("link.stacklab");
        symlink(&path, &link).unwrap();
        for ending in ["-journal", "-wal", "-shm"] {
            let companion = beside(&path, ending);
            std::fs::write(&companion, "").unwrap();
            check_files(&path).unwrap();
            std::fs::remove_file(&companion).unwrap();
            make_fifo(&companion);
            for path in [&path, &link] {
                let refused = check_files(path).unwrap_err();
                assert!(refused.contains(&format!("a.stacklab{ending} is not a regular file")), "{refused}");
            }
            std::fs::remove_file(&companion).unwrap();
            std::fs::create_dir(&companion).unwrap();
            check_files(&path).unwrap_err();
            std::fs::remove_dir(&companion).unwrap();
            drop(UnixListener::bind(&companion).unwrap());
            check_files(&path).unwrap_err();
            std::fs::remove_file(&companion).unwrap();
            symlink("/dev/null", &companion).unwrap();
            check_files(&path).unwrap_err();
            std::fs::remove_file(&companion).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
        make_fifo(&path);
        for path in [&path, &link, Path::new("/dev/null")] {
            assert!(check_files(path).unwrap_err().contains("is not a regular file"));
        }
        assert!(check_files(folder.path()).unwrap_err().contains("is a folder"));
    }

    #[test]
    fn a_lock_that_is_released_in_a_moment_is_waited_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let first = File::open(file.path()).unwrap();
        lock_alone(&first).unwrap();
        let ends = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            drop(first);
        });
        let second = File::open(file.path()).unwrap();
        lock_alone(&second).unwrap();
        ends.join().unwrap();
        let third = File::open(file.path()).unwrap();
        assert!(matches!(lock_alone(&third), Err(TryLockError::WouldBlock)));
    }
}

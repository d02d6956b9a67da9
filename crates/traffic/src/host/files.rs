//! Files that a user names. One may be a pipe that nobody writes, and the wait for it must end when the user says so.

use stacklab_model::decode_text;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this program waits for its user, and has nothing to put in order before it ends. Where a first signal is
/// only noted, as by the handlers of a measurement, the handlers end the program at once while this is set.
pub static WAITS_FOR_USER: AtomicBool = AtomicBool::new(false);

/// The text of a file that a user names, in the encodings of [`decode_text`]. It is read as [`wait_for_user`] waits.
pub fn read_text_file(path: &Path) -> io::Result<String> {
    wait_for_user(|| fs::read(path)).and_then(decode_text)
}

/// Does what may wait for another program or a person without end: meanwhile the first signal ends this program, with
/// exit code 130. For one thread.
pub fn wait_for_user<T>(wait: impl FnOnce() -> T) -> T {
    WAITS_FOR_USER.store(true, Ordering::SeqCst);
    let done = wait();
    WAITS_FOR_USER.store(false, Ordering::SeqCst);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_may_end_it_while_it_waits() {
        assert!(!WAITS_FOR_USER.load(Ordering::SeqCst));
        assert!(wait_for_user(|| WAITS_FOR_USER.load(Ordering::SeqCst)));
        assert!(!WAITS_FOR_USER.load(Ordering::SeqCst));
    }

    #[test]
    fn text_of_a_file_is_decoded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"\xff\xfea\0").unwrap();
        assert_eq!(read_text_file(file.path()).unwrap(), "a");
        assert!(read_text_file(Path::new("/nowhere")).is_err());
    }
}

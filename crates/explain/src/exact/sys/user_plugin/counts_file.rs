//! The file of a process, mapped while it runs, so that its counts are there however it ends.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::{File, OpenOptions, metadata};
use std::io::{self, ErrorKind};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most blocks of a process; its file is sparse.
pub(super) const MAX_BLOCKS: usize = 1 << 21;
/// Most programs that one process executes, one after the other.
const MAX_EXECUTIONS: u32 = 10_000;
/// The header has numbers of 64 bits, and then the program that was executed elsewhere, up to a zero.
const TEXT_OFFSET: usize = 64;
const TEXT_BYTES: usize = 256;
/// Lines of files follow, and then blocks.
const FILES_OFFSET: usize = 4096;
const FILES_BYTES: usize = 4 << 20;
const BLOCKS_OFFSET: usize = FILES_OFFSET + FILES_BYTES;
const FILE_BYTES: usize = BLOCKS_OFFSET + MAX_BLOCKS * size_of::<Block>();

const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_FIXED: c_int = 16;
const MAP_ANONYMOUS: c_int = 32;
const MAP_NORESERVE: c_int = 0x4000;
const O_RDWR_CREAT_EXCL: c_int = 0o2 | 0o100 | 0o200;
const O_CLOEXEC: c_int = 0o2_000_000;
const O_PATH: c_int = 0o10_000_000;
const F_DUPFD_CLOEXEC: c_int = 1030;
/// The folder's descriptor is at least this: programs count on low numbers being free.
const MIN_DESCRIPTOR: c_int = 900;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        from: i64,
    ) -> *mut c_void;
    fn openat(folder: c_int, path: *const c_char, flags: c_int, ...) -> c_int;
    fn fcntl(file: c_int, command: c_int, ...) -> c_int;
}

/// A block of instructions, as the file has it.
#[repr(C)]
pub(super) struct Block {
    pub executions: AtomicU64,
    /// Of its first instruction in the file with the code; of code without a file, its address.
    pub offset: u64,
    /// The line of the file.
    pub file: u32,
    pub instructions: u32,
}

/// The numbers at the beginning.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Blocks,
    /// Blocks that had no room.
    Lost,
    /// Programs that are executed without the emulator, or that are about to be.
    Uncounted,
    /// The same with the emulator: they have the process's next file.
    Executed,
    /// Whether a child has no file, or lines had no room.
    Incomplete,
    /// Bytes of lines.
    Files,
}

pub(super) struct CountsFile {
    folder: Folder,
    memory: *mut u8,
}

// SAFETY: the file stays mapped for as long as the process lives, and numbers in it are atomic.
unsafe impl Send for CountsFile {}

impl CountsFile {
    pub(super) fn create(folder: &Path) -> Option<Self> {
        let mut file = CountsFile { folder: Folder::open(folder)?, memory: null_mut() };
        file.map_new().ok()?;
        Some(file)
    }

    /// In the child of a fork: another file, without the parent's counts. If there cannot be one, the parent's says
    /// that counts are missing, and the child no longer writes to it.
    pub(super) fn start_child(&mut self) {
        if self.map_new().is_ok() {
            return;
        }
        self.number(Number::Incomplete).store(1, Ordering::Relaxed);
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
        // SAFETY: it replaces nothing but the mapping of the parent's file, which has this length.
        unsafe { mmap(self.memory.cast(), FILE_BYTES, PROT_READ_WRITE, flags, -1, 0) };
    }

    /// Makes this process's file, and maps it in the place of the one before. A process that executes another program
    /// keeps its number.
    fn map_new(&mut self) -> io::Result<()> {
        let id = std::process::id();
        let mut number = 0;
        let file = loop {
            match self.folder.create_file(&format!("{id}-{number}.blocks")) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < MAX_EXECUTIONS => {
                    number += 1
                }
                created => break created?,
            }
        };
        file.set_len(FILE_BYTES as u64)?;
        let flags = if self.memory.is_null() { MAP_SHARED } else { MAP_SHARED | MAP_FIXED };
        // SAFETY: it replaces nothing but the mapping of the parent's file, which has this length.
        let mapped =
            unsafe { mmap(self.memory.cast(), FILE_BYTES, PROT_READ_WRITE, flags, file.as_raw_fd(), 0) };
        if mapped as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        self.memory = mapped.cast();
        Ok(())
    }

    pub(super) fn number(&self, number: Number) -> &AtomicU64 {
        // SAFETY: the file is mapped, and begins with them.
        unsafe { &*self.memory.cast::<AtomicU64>().add(number as usize) }
    }

    /// Writes a block without executions.
    pub(super) fn write_block(
        &self,
        number: usize,
        (file, offset, instructions): (u32, u64, u32),
    ) -> *mut Block {
        let block = self.block(number);
        // SAFETY: the place is inside the mapped file, and nobody else has it yet.
        unsafe { block.write(Block { executions: AtomicU64::new(0), offset, file, instructions }) };
        self.number(Number::Blocks).fetch_max(number as u64 + 1, Ordering::Relaxed);
        block
    }

    pub(super) fn block(&self, number: usize) -> *mut Block {
        self.memory.wrapping_add(BLOCKS_OFFSET + number * size_of::<Block>()).cast()
    }

    pub(super) fn write_line(&self, line: &[u8]) {
        let used = self.number(Number::Files).load(Ordering::Relaxed) as usize;
        let free = FILES_BYTES.saturating_sub(used);
        if line.len() + 1 > free {
            self.number(Number::Incomplete).store(1, Ordering::Relaxed);
            return;
        }
        self.copy(FILES_OFFSET + used, line);
        self.copy(FILES_OFFSET + used + line.len(), b"\n");
        self.number(Number::Files).store((used + line.len() + 1) as u64, Ordering::Relaxed);
    }

    /// Notes a program that is about to be executed without the emulator.
    pub(super) fn note_escape(&self, what: &str) {
        let text = &what.as_bytes()[..what.len().min(TEXT_BYTES - 1)];
        self.copy(TEXT_OFFSET, text);
        self.copy(TEXT_OFFSET + text.len(), b"\0");
        self.number(Number::Uncounted).fetch_add(1, Ordering::Relaxed);
    }

    fn copy(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the callers write inside the mapped file, with the plugin's lock.
        unsafe { self.memory.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// The folder of the files. A process may lose the right to open it by its path, or its root; one that closes all its
/// descriptors loses that of the folder.
struct Folder {
    path: PathBuf,
    descriptor: c_int,
    identity: (u64, u64),
}

impl Folder {
    fn open(path: &Path) -> Option<Self> {
        let file = OpenOptions::new().read(true).custom_flags(O_PATH).open(path).ok()?;
        let about = file.metadata().ok()?;
        // SAFETY: it makes another descriptor of this file.
        let high = unsafe { fcntl(file.as_raw_fd(), F_DUPFD_CLOEXEC, MIN_DESCRIPTOR) };
        let descriptor = if high < 0 { file.into_raw_fd() } else { high };
        Some(Folder { path: path.to_owned(), descriptor, identity: (about.dev(), about.ino()) })
    }

    fn create_file(&self, name: &str) -> io::Result<File> {
        if !self.is_open() {
            let about = metadata(&self.path)?;
            if (about.dev(), about.ino()) != self.identity {
                return Err(ErrorKind::NotFound.into());
            }
            return OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name));
        }
        let name = CString::new(name.as_bytes())?;
        // SAFETY: the name ends with a zero.
        let file =
            unsafe { openat(self.descriptor, name.as_ptr(), O_RDWR_CREAT_EXCL | O_CLOEXEC, 0o600 as c_int) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open, and nobody else has it.
        Ok(unsafe { File::from_raw_fd(file) })
    }

    /// Whether the descriptor is still that of the folder: the program may have closed it.
    fn is_open(&self) -> bool {
        // SAFETY: it is not closed here.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(self.descriptor) });
        file.metadata().is_ok_and(|about| (about.dev(), about.ino()) == self.identity)
    }
}

/// The line of a file with code: what distinguishes it from another one at its path, and the path.
pub(super) fn describe_file(path: Vec<u8>) -> Vec<u8> {
    let path = std::ffi::OsString::from_vec(path);
    let mut line = match metadata(&path) {
        Ok(about) => {
            let [size, s, ns] = [about.size() as i64, about.mtime(), about.mtime_nsec()];
            format!("{} {} {size} {s} {ns} ", about.dev(), about.ino()).into_bytes()
        }
        Err(_) => b"0 0 0 0 0 ".to_vec(),
    };
    line.extend(path.into_vec());
    line
}

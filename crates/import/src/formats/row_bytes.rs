//! The bytes of rows of CSV as they are read: how long a row is, and how lines end.

use std::io::Read;

/// The longest row.
const MAX_ROW_BYTES: u64 = 1 << 20;

/// Bytes for a row at a time: a row that does not end would fill the memory.
pub(super) struct RowBytes<R> {
    inner: R,
    given: u64,
    /// Up to where rows may be read, by the reader's position.
    until: u64,
    /// Whether the first line ends as in Windows; `None` if none has ended.
    is_windows: Option<bool>,
    last: u8,
}

impl<R> RowBytes<R> {
    pub(super) fn new(inner: R) -> Self {
        RowBytes { inner, given: 0, until: MAX_ROW_BYTES, is_windows: None, last: b'\n' }
    }

    /// Lets the row behind this byte be read.
    pub(super) fn allow_row(&mut self, position: u64) {
        self.until = position + MAX_ROW_BYTES;
    }

    pub(super) fn has_windows_lines(&self) -> bool {
        self.is_windows == Some(true)
    }

    /// Whether the last line that was read has its end.
    pub(super) fn is_last_line_whole(&self) -> bool {
        [b'\n', b'\r'].contains(&self.last)
    }
}

impl<R: Read> Read for RowBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.given > self.until {
            return Err(std::io::Error::other(format!("a row is longer than {} MiB", MAX_ROW_BYTES >> 20)));
        }
        let count = self.inner.read(buffer)?;
        let bytes = &buffer[..count];
        if self.is_windows.is_none()
            && let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
        {
            let before = end.checked_sub(1).map_or(self.last, |place| bytes[place]);
            self.is_windows = Some(before == b'\r');
        }
        self.last = bytes.last().copied().unwrap_or(self.last);
        self.given += count as u64;
        Ok(count)
    }
}

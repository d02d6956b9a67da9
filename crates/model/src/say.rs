//! Lines on standard error.

/// Prints a line for a person on standard error. Where that cannot be written (`2>/dev/full`, a pipe to `head` that has
/// ended) nobody reads it, and nothing fails for it.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

/// The same for a part of a line.
#[macro_export]
macro_rules! say_part {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($part)*);
    }};
}

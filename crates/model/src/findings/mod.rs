//! What a campaign found, and how two records compare.

pub(crate) mod difference;
pub(crate) mod finding;
pub(crate) mod records;

//! The findings of a campaign, and the comparison of two records.

pub(crate) mod difference;
pub(crate) mod finding;
pub(crate) mod records;

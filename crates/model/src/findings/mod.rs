//! The findings of a campaign and of a fleet, and the comparison of two records.

pub(crate) mod blocks;
pub(crate) mod campaign;
pub(crate) mod difference;
pub(crate) mod finding;
pub(crate) mod fleet;
pub(crate) mod overall;
pub(crate) mod records;
pub(crate) mod same_arm;

//! Two cells of one campaign: their pairs, evidence and effect; and the claims of all comparisons together.

pub(crate) mod blocks;
pub(crate) mod distance;
pub(crate) mod evidence;
pub(crate) mod family;
pub(crate) mod outlook;
pub(crate) mod paired;

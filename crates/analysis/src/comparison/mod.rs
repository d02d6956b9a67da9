//! Two cells of one campaign: their pairs, the verdict, and when it is settled.

pub(crate) mod distance;
pub(crate) mod hypothesis_tests;
pub(crate) mod many_arms;
pub(crate) mod paired;
pub(crate) mod stopping_state;
pub(crate) mod verdict;

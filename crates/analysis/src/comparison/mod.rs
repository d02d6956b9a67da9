//! Two cells of one campaign: their pairs, effect, tests, verdict and stopping state.

pub(crate) mod distance;
pub(crate) mod hypothesis_tests;
pub(crate) mod many_arms;
pub(crate) mod outlook;
pub(crate) mod paired;
pub(crate) mod stopping_state;
pub(crate) mod verdict;

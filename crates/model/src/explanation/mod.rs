//! Where in the network stack the processors' time goes: what was sampled, and what it shows.

pub(crate) mod exact;
pub(crate) mod pair;
pub(crate) mod profile;
pub(crate) mod stage_costs;

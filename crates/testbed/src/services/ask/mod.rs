//! Queries to each service as a client on the sender sends them, with checks of the answers.

pub(crate) mod answer;
pub(crate) mod asker;
pub(crate) mod dhcp;
pub(crate) mod directory;
pub(crate) mod dns;

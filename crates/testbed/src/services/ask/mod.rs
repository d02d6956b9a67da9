//! One query to each service, as a client on the sender sends it, and the answer checked.

pub(crate) mod answer;
pub(crate) mod asker;
pub(crate) mod dhcp;
pub(crate) mod directory;
pub(crate) mod dns;

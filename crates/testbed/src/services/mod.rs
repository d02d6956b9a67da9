//! Services on the receiver, in addition to the measured traffic. The receiver is then a server and the sender its
//! client: real daemons run in the receiver's namespace, and a light load of queries comes from the sender's
//! namespace.
//!
//! | file | what it holds |
//! |---|---|
//! | `program` | the daemons' programs, and how to get them |
//! | `dnsmasq`, `slapd` | one constant each: its command, and its configuration in files of a temporary folder |
//! | `daemon` | a running daemon |
//! | `serving` | all daemons of a testbed |
//! | `ask` | one query to each service, with a check of the answer |
//! | `load` | the queries during a trial |

pub(crate) mod ask;
pub(crate) mod daemon;
mod dnsmasq;
mod load;
pub(crate) mod program;
pub(crate) mod serving;
mod slapd;

pub use load::Asked;
pub use serving::{Serving, abilities, check};

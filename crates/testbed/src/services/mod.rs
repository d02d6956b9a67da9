//! Services that run on the receiver beside what is measured, so that it is a server and the sender its client: real daemons
//! in its namespace, and a light load of queries from the sender's.
//!
//! | file | what it holds |
//! |---|---|
//! | `program` | the daemons' programs, and how to get them |
//! | `dnsmasq`, `slapd` | what each is told, in files of a folder that goes with it |
//! | `daemon` | a daemon that runs |
//! | `serving` | all daemons of a testbed |
//! | `ask` | one query to each service, its answer checked |
//! | `load` | many of them, while a trial runs |

mod ask;
pub(crate) mod daemon;
mod dnsmasq;
mod load;
mod program;
pub(crate) mod serving;
mod slapd;

pub use load::Asked;
pub use serving::{Serving, abilities, check};

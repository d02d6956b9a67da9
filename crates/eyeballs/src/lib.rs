//! How a program chooses between IPv6 and IPv4: which family it takes, and how long it waits for the other (Happy
//! Eyeballs, RFC 8305).
//!
//! [`measure`] runs a command in a network namespace whose only way out is this program. The program is the wire, which
//! delays, loses or refuses the packets of a family, and the resolver, which delays, loses or refuses the answers of a
//! type. All times are those of packets and queries there; nothing is asked of the command.
//!
//! | file | contents |
//! |---|---|
//! | `scenario` | what the network does |
//! | `network` | namespaces, wire, resolver and servers |
//! | `client` | the command, and its end |
//! | `reference` | the built-in client with a known delay |
//! | `run` | a run, from the logs of wire and resolver |
//! | `measure` | the runs of all scenarios |
//! | `runs`, `measurement` | what they gave |
//! | `summary`, `reaction`, `clauses` | what the runs say of the client |
//! | `compare` | two clients |
//! | `print`, `times` | the tables |
//! | `page` | the page with timelines |

mod clauses;
mod client;
mod compare;
pub mod fuzzing;
mod measure;
mod measurement;
mod network;
mod page;
mod print;
mod progress;
mod reaction;
mod reference;
mod run;
mod runs;
mod scenario;
mod summary;
mod times;

pub use clauses::{Clause, ClauseVerdict};
pub use compare::{ClientComparison, DelayDiff};
pub use measure::{MeasurementSettings, compare, measure};
pub use measurement::{Measurement, ReferenceCheck};
pub use network::authority::Credentials;
pub use page::{comparison_to_html, to_html};
pub use print::{comparison_to_json, describe, describe_comparison, to_json};
pub use run::{ConnectionAttempt, FirstByte, FirstDatagram, LoggedQuery, Refusal, RefusedBy, Run, RunEnd};
pub use runs::{Delay, ScenarioRuns};
pub use scenario::ScenarioSet;
pub use summary::{Reaction, Summary};

use stacklab_testbed::TestbedError;
use std::io;

/// Why a client was not measured, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum EyeballsError {
    /// The request cannot be measured.
    #[error("{0}")]
    Usage(String),
    /// The namespaces cannot be built here.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The command cannot be run, or asks for no name.
    #[error("{0}")]
    Client(String),
    /// A step on this machine failed.
    #[error("could not {step}: {reason}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// The user interrupted.
    #[error("interrupted: nothing is left of the namespaces")]
    Interrupted,
}

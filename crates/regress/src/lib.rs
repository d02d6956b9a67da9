//! Two kernels by instructions per message: which family changed, in which functions, and which commit did it.
//!
//! | file | contents |
//! |---|---|
//! | `source` | kernels as the command line names them; commits in a git repository |
//! | `git` | a repository, read only: its commits are checked out in stacklab's cache |
//! | `counter` | builds, boots and counts kernels; keeps the counts of commits |
//! | `comparison` | candidate minus baseline, by cell and function |
//! | `condition` | what makes a candidate bad: `ipv6 > 0.5 %` |
//! | `bisect` | the search for the commit |
//! | `rendering` | the formats |

mod bisect;
mod comparison;
mod condition;
mod counter;
mod git;
mod rendering;
mod source;

pub use bisect::{Bisection, Found, bisect};
pub use comparison::{Comparison, Outcome};
pub use condition::Condition;
pub use counter::{Counted, Counter};
pub use git::{Commit, Repository};
pub use rendering::{RegressFormat, bisection, comparison};
pub use source::Source;

/// Why kernels cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum RegressError {
    /// The request contradicts itself, or names what does not exist.
    #[error("{0}")]
    Usage(String),
    /// A kernel cannot be built, or does not boot; others may.
    #[error("{0}")]
    Kernel(String),
    /// This machine cannot build or count kernels.
    #[error("{0}")]
    Machine(String),
    /// The user interrupted.
    #[error("interrupted; compiled objects and counts so far are kept")]
    Interrupted,
}

/// Smallest change that has an outcome, instructions per message. Another layout of the same source changes less.
pub const NOTICEABLE: f64 = 8.0;

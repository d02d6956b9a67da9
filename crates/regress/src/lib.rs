//! Two kernels by instructions per message: which family changed, in which functions, and which commit did it.
//!
//! | file | contents |
//! |---|---|
//! | `git` | kernels as the command line names them; commits of a repository, which is only read |
//! | `counter` | builds, boots and counts kernels; keeps the counts of commits |
//! | `change` | candidate minus baseline, by cell and function |
//! | `comparison` | the outcome, and what makes a candidate bad: `ipv6 > 0.5 %` |
//! | `bisect` | the search for the commit |
//! | `rendering` | the formats |

mod bisect;
mod change;
mod comparison;
mod counter;
mod git;
mod rendering;

pub use bisect::{Bisection, bisect};
pub use comparison::{ChangedFamilies, Condition, KernelComparison};
pub use counter::{CountedKernel, Counter};
pub use git::{Commit, Repository, Source};
pub use rendering::{RegressFormat, bisection, comparison};

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

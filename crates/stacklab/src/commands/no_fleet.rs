//! `stacklab fleet` in a build without fleets (feature `fleet`).

use crate::failure::Failure;
use clap::Subcommand;
use stacklab_serve::FleetError;
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Any command of fleets
    #[command(external_subcommand)]
    Any(#[expect(dead_code, reason = "all of them are refused")] Vec<OsString>),
}

pub(crate) fn fleet(_: FleetCommand) -> Result<(), Failure> {
    Err(FleetError.into())
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        Self::usage(error)
    }
}

/// The store that `serve --fleet` is asked for: serving it is refused.
pub(crate) fn served_store(given: Option<Option<String>>) -> Result<Option<String>, Failure> {
    Ok(given.map(Option::unwrap_or_default))
}

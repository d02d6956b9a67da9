//! In a build without fleets (feature `fleet`): a store that cannot be opened.

use crate::ServeError;
use serde::Deserialize;
use std::convert::Infallible;

/// This build has no fleets.
#[derive(Debug, thiserror::Error)]
#[error("this build of stacklab leaves out fleets: `make build` adds them")]
pub struct FleetError;

#[derive(Debug, Deserialize)]
pub(super) struct FleetPart {}

pub(super) struct Fleet(Infallible);

impl Fleet {
    pub(super) fn open(_: &str) -> Result<Self, ServeError> {
        Err(FleetError.into())
    }

    pub(super) fn place(&self) -> &str {
        match self.0 {}
    }

    pub(super) fn listing(&self) -> Result<String, ServeError> {
        match self.0 {}
    }

    pub(super) fn campaign(&self, _: &FleetPart) -> Result<Option<String>, ServeError> {
        match self.0 {}
    }
}

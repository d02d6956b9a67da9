//! What a study varies: one file for each factor that has levels of its own, and the cell that they make.

pub(crate) mod cell;
pub(crate) mod family;
pub(crate) mod mechanism;
pub(crate) mod services;
pub(crate) mod settings;
pub(crate) mod system;

//! What a study varies: one file for each factor that has levels of its own, and the cell that they make.

pub(crate) mod cell;
pub(crate) mod factor;
pub(crate) mod family;
pub(crate) mod mechanism;
mod of_cell;
pub(crate) mod services;
pub(crate) mod settings;
pub(crate) mod system;

//! What a study varies: one file for each factor with its own level type, and the cell that combines the levels.

pub(crate) mod cell;
pub(crate) mod factor;
pub(crate) mod family;
pub(crate) mod generator;
pub(crate) mod mechanism;
mod of_cell;
pub(crate) mod services;
pub(crate) mod settings;
pub(crate) mod system;

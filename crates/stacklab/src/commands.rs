//! The commands: their options, and what they do.

pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod eyeballs;
#[cfg_attr(not(feature = "fleet"), path = "commands/no_fleet.rs")]
pub(crate) mod fleet;
pub(crate) mod image;
pub(crate) mod import;
pub(crate) mod lab;
pub(crate) mod measure;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod published;
pub(crate) mod regress;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod study;
pub(crate) mod tools;

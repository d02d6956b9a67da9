//! One file per command: its options, and what it does.

pub(crate) mod agent;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod image;
pub(crate) mod import;
pub(crate) mod lab;
pub(crate) mod measure;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod reference;
pub(crate) mod regress;
pub(crate) mod replicate;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod study;
pub(crate) mod tools;

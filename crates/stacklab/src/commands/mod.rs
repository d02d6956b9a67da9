//! One file per verb.

pub(crate) mod agent;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod generate;
pub(crate) mod guest;
pub(crate) mod image;
pub(crate) mod import;
pub(crate) mod lab;
pub(crate) mod measure;
pub(crate) mod output;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod reference;
pub(crate) mod replicate;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod ssh_clean;
pub(crate) mod study;

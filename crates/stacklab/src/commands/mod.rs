//! One file per verb.

pub mod agent;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod generate;
pub mod guest;
pub mod image;
pub mod import;
pub mod lab;
pub mod measure;
pub mod output;
pub mod path;
pub mod plan;
pub mod reference;
pub mod replicate;
pub mod report;
pub mod run;
pub mod ssh_clean;

//! A campaign: the rigs that its trials run on, the trials, the programs that drive them, and the order in which they
//! are measured. What a trial gives is a run; a record of runs becomes findings here too.

mod chart;
mod error;
pub mod generator;
pub mod imported;
pub mod lab;
mod measure;
pub mod progress;
pub mod record;
pub mod rig;
pub mod schedule;
pub mod single;
pub mod slow_path;
pub mod sources;
pub mod trial;

pub use error::CampaignError;
pub use measure::measure;

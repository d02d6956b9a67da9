//! The control protocol between coordinator and agent: messages, and the coordinator's client.

pub(crate) mod client;
pub(crate) mod error;
pub(crate) mod lines;
pub(crate) mod message;

pub use client::{AgentClient, Pending};
pub use error::AgentError;
pub use lines::{Lines, json_line, printable};
pub use message::{Answer, Numbered, Request, SendArm, Timetable, VERSIONS};
pub use stacklab_model::printable_text;

//! The medium as its callers see it.

mod behaviour;
mod saturation;
mod senders;
mod tcp;

//! The kernel's sampling interface. All `unsafe` of this crate is here.
#![allow(unsafe_code)]

mod counter;
mod processors;
mod ring;

pub(crate) use counter::{Counter, Rate};
pub(crate) use processors::{cpus, now_ns};
pub(crate) use ring::{Record, Ring};

//! The highest load at which a path loses no more than a given share of its frames.
//!
//! Everything here is pure: a caller sends the frames, counts them, and says what came of it. So the same code runs in
//! a testbed, in a simulation and against known results.
//!
//! | module | |
//! |---|---|
//! | [`burst`] | the longest burst of which nothing is lost (RFC 2544, RFC 9004) |
//! | [`goal`] | what is searched: loss ratio, durations, width; the goals of RFC 2544 and others |
//! | [`grid`] | the loads that a search may choose |
//! | [`class`] | whether a load is a lower or an upper bound, from its trials (RFC 9971) |
//! | [`controller`] | MLRsearch: several goals of one arm, trial by trial |
//! | [`loss_curve`] | what is lost at 100 %, 90 % .. of the highest load (RFC 2544) |
//! | [`lockstep`] | the bounds of several arms, in turns of a trial each |
//! | [`paired`] | several arms at their own loads, in turns of a slice each |

pub mod burst;
pub mod class;
pub mod controller;
pub mod goal;
pub mod grid;
pub mod lockstep;
pub mod loss_curve;
pub mod paired;
mod targets;

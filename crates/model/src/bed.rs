//! The place where a study runs.

use crate::{Cell, Factor, Rate};
use serde::{Deserialize, Serialize};

/// What every link between hosts is; both families are addressed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bed {
    /// Rate of the link in each direction, Ethernet overhead counted; `None` is as fast as the kernel goes.
    pub rate: Option<Rate>,
    /// Largest IP packet of the link, bytes.
    pub mtu: u32,
    /// Whether segmentation and receive offloads stay on. Off, a packet in the kernel is a packet on the wire.
    pub offloads: bool,
}

impl Bed {
    /// Largest IP packet of the link in a cell, bytes: the cell's own, where the study varies it.
    pub fn mtu_of(&self, cell: &Cell) -> u32 {
        cell.number(Factor::Mtu).unwrap_or(self.mtu)
    }
}

//! Factors that are cell settings: their levels, and the cells that result from them.

use crate::diagnostics::{Location, Problems};
use crate::language::leaf;
use crate::parse::tree::Located;
use crate::read::node::{At, items};
use stacklab_model::{Cell, Factor, Family, Mechanism, Transport};

/// A factor of [`Factor::is_setting`] that the study has, with its levels as written.
pub(super) struct Setting {
    pub factor: Factor,
    pub levels: Vec<At<String>>,
}

impl Setting {
    /// The settings of the study, in the model's order.
    pub(super) fn read(factors: Option<&Located>, problems: &Problems) -> Vec<Self> {
        let read = |factor: &Factor| {
            let read = match factor {
                Factor::Os | Factor::RouterOs => leaf::systems,
                Factor::Services => leaf::services,
                _ => leaf::level,
            };
            let levels = items(factors?.path(factor.name()), read, problems);
            (!levels.is_empty()).then_some(Setting { factor: *factor, levels })
        };
        Factor::ALL.iter().filter(|factor| factor.is_setting()).filter_map(read).collect()
    }

    /// Whether it has the same value in every cell that can have it.
    pub(super) fn is_fixed(&self) -> bool {
        self.levels.len() == 1
    }

    /// The cells that result from applying it to a cell. If a fixed setting does not apply, the cell stays unchanged.
    pub(super) fn spread(&self, cell: Cell) -> Vec<Cell> {
        if self.is_fixed() && !need(self.factor, &self.levels[0].value).is_met(&cell) {
            return vec![cell];
        }
        // A mechanism has cells of the families that it carries only.
        let carries = |level: &&At<String>| {
            self.factor != Factor::Mechanism
                || level.value.parse().is_ok_and(|mechanism: Mechanism| mechanism.carries(cell.family))
        };
        let with = |level: &At<String>| {
            let mut cell = cell.clone();
            cell.set(self.factor, &level.value).ok()?;
            Some(cell)
        };
        self.levels.iter().filter(carries).filter_map(with).collect()
    }

    /// The levels that are numbers, with their places.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, &Location)> {
        self.levels.iter().filter_map(|level| Some((level.value.parse().ok()?, &level.place)))
    }
}

/// The requirements of a level on a cell.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Need {
    Nothing,
    Transport(Transport),
    Family(Family),
}

impl Need {
    fn is_met(self, cell: &Cell) -> bool {
        match self {
            Need::Nothing => true,
            Need::Transport(transport) => cell.transport == transport,
            Need::Family(family) => cell.family == family,
        }
    }
}

/// The requirements of a factor's level.
pub(super) fn need(factor: Factor, level: &str) -> Need {
    match (factor, level) {
        (Factor::Io, "gso") => Need::Transport(Transport::Udp),
        (Factor::Io, "zerocopy") => Need::Transport(Transport::Tcp),
        (Factor::Mss | Factor::Nodelay | Factor::CongestionControl | Factor::KernelPacing, _) => {
            Need::Transport(Transport::Tcp)
        }
        (Factor::FlowLabel, _) => Need::Family(Family::Ipv6),
        _ => Need::Nothing,
    }
}

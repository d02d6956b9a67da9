//! The effective settings of a cell, including the defaults for settings that the study does not give.

use crate::factors::cell::Cell;
use crate::factors::generator::Generator;
use crate::factors::mechanism::{Mechanism, Translator};
use crate::factors::services::Services;
use crate::factors::system::Systems;
use crate::trial::tuning::Direction;

impl Services {
    /// Of a cell.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.services.as_deref().cloned().unwrap_or_default()
    }
}

impl Systems {
    /// The systems of a cell's hosts: two namespaces if the study does not name any.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.os.as_deref().cloned().unwrap_or(Systems::NAMESPACES)
    }

    /// The systems of the two routers, the sender's first.
    pub fn of_routers(cell: &Cell) -> Self {
        cell.settings.router_os.as_deref().cloned().unwrap_or(Systems::NAMESPACES)
    }
}

impl Generator {
    /// The generator of a cell: stacklab's own if the study names none.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.generator.unwrap_or(Generator::Stacklab)
    }
}

impl Mechanism {
    /// How packets of a cell cross the link: unchanged if the study does not name a mechanism.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.mechanism.unwrap_or(Mechanism::Native)
    }
}

impl Translator {
    /// The translator that a cell asks for; `None` if the routers' own translator is used.
    pub fn of(cell: &Cell) -> Option<Self> {
        cell.settings.translator
    }
}

impl Direction {
    /// The direction of a cell: forward if the study does not name one.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.direction.unwrap_or(Direction::Forward)
    }
}

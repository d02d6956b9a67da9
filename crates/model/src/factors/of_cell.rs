//! What a cell's settings come to, where a study leaves them out too.

use crate::factors::cell::Cell;
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
    /// What the ends of a cell run: two namespaces where its study does not say.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.os.as_deref().cloned().unwrap_or(Systems::NAMESPACES)
    }

    /// The same of the two routers between them, the sender's first.
    pub fn of_routers(cell: &Cell) -> Self {
        cell.settings.routers.as_deref().cloned().unwrap_or(Systems::NAMESPACES)
    }
}

impl Mechanism {
    /// How packets of a cell cross the link: as they are, where its study does not say.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.mechanism.unwrap_or(Mechanism::Native)
    }
}

impl Translator {
    /// What a cell asks for; `None` where that is left to what its routers have.
    pub fn of(cell: &Cell) -> Option<Self> {
        cell.settings.translator
    }
}

impl Direction {
    /// Of a cell: forward, where its study does not say.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.direction.unwrap_or(Direction::Forward)
    }
}

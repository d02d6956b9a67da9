//! Firewall rules that packets pass on their way.

use crate::names::named;
use serde::{Deserialize, Serialize};

/// The most rules that a study can ask for.
pub const MAX_RULES: u32 = 100_000;

/// Rules on the near router that match no packet of a study, so that each packet is compared with all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rules {
    pub count: u32,
    pub form: RuleForm,
}

named! {
    /// How a firewall has its rules.
    #[derive(Default)]
    pub enum RuleForm("form of rules") {
        /// One rule for each address.
        #[default]
        List = "list",
        /// One rule with a set of all addresses.
        Set = "set",
        /// One rule with a map from all addresses to what is done with their packets.
        Map = "map",
    }
}

//! How a study's hosts are joined.

use serde::{Deserialize, Serialize};

/// How a study's hosts are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// Two hosts, one link.
    #[default]
    Link,
    /// Client, router, router, client, in a row: three links of the same rate and MTU.
    Routed(Middle),
}

/// What the link between two routers does to packets beside its rate, in each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Middle {
    /// How much later they arrive, nanoseconds.
    pub delay_ns: u64,
    /// The share of them that is lost.
    pub loss: f64,
}

impl Middle {
    /// Whether it leaves packets alone.
    pub fn is_plain(&self) -> bool {
        self.delay_ns == 0 && self.loss == 0.0
    }
}

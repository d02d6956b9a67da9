//! The keys of an encrypted tunnel.

use crate::error::{Attempt, Fault};
use serde::{Deserialize, Serialize};
use stacklab_model::{Mechanism, Tunnel};
use std::io;
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

/// The keys that a router needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Its private key.
    pub(super) own: [u8; 32],
    /// The other router's public key.
    pub(super) other: [u8; 32],
}

impl Keys {
    /// Generates keys for the near and the far router. `None` if the mechanism does not encrypt.
    pub(crate) fn draw(mechanism: Mechanism) -> Result<[Option<Self>; 2], Fault> {
        if !mechanism.tunnel().is_some_and(Tunnel::encrypts) {
            return Ok([None, None]);
        }
        let mut private = [[0; 32]; 2];
        let drawn = private.iter_mut().try_for_each(|key| getrandom::fill(key));
        drawn.map_err(io::Error::other).attempt("draw keys for WireGuard")?;
        let [near, far] = private;
        let public = |private| x25519(private, X25519_BASEPOINT_BYTES);
        Ok([Keys { own: near, other: public(far) }, Keys { own: far, other: public(near) }].map(Some))
    }
}

//! Access control on untrusted requests, public for the fuzz targets (`fuzz/`) only.

use crate::guard::{Guard, Pass};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use std::net::SocketAddr;

/// Whether `stacklab serve`, bound to this address and with this token, answers a request with these headers and this
/// query. A header that is not HTTP is refused by the server's parser.
///
/// # Panics
/// If the token is not one that `serve` takes.
pub fn is_served(bound: SocketAddr, token: &str, headers: &[(&[u8], &[u8])], query: &str) -> bool {
    let guard = Guard::new(bound, Some(token)).expect("a token of letters and digits");
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) else {
            return false;
        };
        map.append(name, value);
    }
    matches!(guard.pass(&map, query), Pass::Yes | Pass::Welcome(_))
}

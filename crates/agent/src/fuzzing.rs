//! Parsers of the lines of a handshake: untrusted input. Public for the fuzz targets (`fuzz/`) only.

use crate::auth::{AddressPair, Challenge, Gate, Hello, Judged, Response, Welcome};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The line as each of the four lines of a handshake, written again: those that it is.
pub fn handshake_lines(line: &[u8]) -> Vec<String> {
    fn as_one<T: DeserializeOwned + Serialize>(line: &[u8]) -> Option<String> {
        serde_json::to_string(&serde_json::from_slice::<T>(line).ok()?).ok()
    }
    let lines =
        [as_one::<Challenge>(line), as_one::<Hello>(line), as_one::<Response>(line), as_one::<Welcome>(line)];
    lines.into_iter().flatten().collect()
}

/// The addresses of the coordinator that a gate admits by this line, which responds to the gate's own challenge (the
/// first) and had one itself; `None` if it is not admitted.
pub fn admitted(
    gate: &Gate,
    challenges: [&String; 2],
    here: AddressPair,
    line: &[u8],
) -> Option<Vec<AddressPair>> {
    match gate.judge(challenges, "", here, &serde_json::from_slice(line).ok()?) {
        Judged::Admitted(admitted) => Some(admitted.addresses),
        Judged::Refused(_) | Judged::Shown(_) => None,
    }
}

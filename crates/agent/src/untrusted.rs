//! What reads strangers' greetings, as functions of bytes. The program calls the same where it needs it; this module is for the fuzz
//! targets (`fuzz/`), which give it any bytes.

use crate::greeting::{AddressPair, Challenge, Gate, Judged, Response, Welcome, understood};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The line as each of the three lines of a greeting, written again: those that it is.
pub fn greetings(line: &[u8]) -> Vec<String> {
    fn as_one<T: DeserializeOwned + Serialize>(line: &[u8]) -> Option<String> {
        serde_json::to_string(&understood::<T>(line).ok()?).ok()
    }
    let lines = [as_one::<Challenge>(line), as_one::<Response>(line), as_one::<Welcome>(line)];
    lines.into_iter().flatten().collect()
}

/// The addresses of the coordinator that a gate admits by this line, which responds to the gate's own challenge; `None` if it is not
/// admitted.
pub fn admitted(
    gate: &Gate,
    own_challenge: &str,
    here: AddressPair,
    line: &[u8],
) -> Option<Vec<AddressPair>> {
    match gate.judge(own_challenge, here, &understood(line).ok()?) {
        Judged::Admitted(admitted) => Some(admitted.addresses),
        Judged::Refused(_) | Judged::Shown(_) => None,
    }
}

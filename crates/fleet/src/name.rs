//! Names of agents and campaigns: parts of file names and of subjects.

use crate::FleetError;

const LONGEST: usize = 64;

/// Checks a name.
pub(crate) fn check(what: &str, name: &str) -> Result<(), FleetError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !name.is_empty() && name.len() <= LONGEST && name.bytes().all(is_plain) {
        return Ok(());
    }
    let name = stacklab_model::printable_lines(name);
    Err(FleetError::Usage(format!(
        "`{name}` cannot be the name of {what}: use up to {LONGEST} letters, digits, - and _"
    )))
}

//! Variables of the environment. Only this user and root can read them, but every user the arguments of a program.

use crate::failure::Failure;

/// The value of a variable, without spaces and ends of lines around it; `None` if it is not set, or empty.
pub(crate) fn read_variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var_os(name).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Some(Err(_)) => Err(Failure::usage(format!("{name} in the environment is not valid UTF-8"))),
    }
}

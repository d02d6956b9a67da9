//! Ctrl-C and termination signals.

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGXFSZ};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

#[cfg(unix)]
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// A flag that is set once the user has interrupted. A second Ctrl-C ends the program at once. For one thread.
///
/// # Errors
/// When the signal handlers cannot be installed.
pub fn flag() -> io::Result<&'static AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    // Handlers that are installed twice would take one signal for two.
    if let Some(flag) = FLAG.get() {
        return Ok(flag);
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        // In this order: the first signal finds the flag unset and sets it, the second one finds it set and exits.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    // A file that may not become longer is an error of its writing, and says which file it is.
    #[cfg(unix)]
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    Ok(FLAG.get_or_init(|| flag))
}

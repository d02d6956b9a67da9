//! `stacklab serve`.

use crate::cli::report::ServeOptions;
use crate::failure::Failure;
use stacklab_serve::Settings;

/// Serves the page over a folder of records until it is interrupted.
pub(crate) fn serve(options: ServeOptions) -> Result<(), Failure> {
    let ServeOptions { folder, listen, token, metrics, .. } = options;
    Ok(stacklab_serve::serve(&Settings { folder, listen, token, metrics })?)
}

//! The program `stacklab`. All of it is in the library beside it, where the fuzz targets find what reads strangers'
//! files and requests.

use std::process::ExitCode;

fn main() -> ExitCode {
    stacklab::main()
}

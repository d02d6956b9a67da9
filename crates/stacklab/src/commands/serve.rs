//! `stacklab serve`.

use crate::commands::fleet::served_store;
use crate::environment::read_variable;
use crate::failure::Failure;
use clap::Args;
use stacklab_serve::Settings;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

const PAGE_PORT: u16 = 8046;

/// `ADDR:PORT`, `ADDR` or `:PORT`, as `agent --listen` takes them; without an address, this machine's programs only.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(address) => Ok(SocketAddr::new(address, PAGE_PORT)),
        Err(_) => {
            Err("expected ADDR:PORT, such as 127.0.0.1:8046 or [::]:8046, an address, or :PORT".to_owned())
        }
    }
}

fn renamed_to_listen(_: &str) -> Result<Infallible, String> {
    Err("renamed to --listen ADDR:PORT".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// The folder with the records
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// Show the campaigns of a fleet too, from its store: a SQLite file, or postgres://USER@HOST/DATABASE; without a
    /// value, that of STACKLAB_STORE in the environment, where an address with a password belongs
    #[arg(long, value_name = "STORE")]
    pub fleet: Option<Option<String>>,
    /// The address and port to listen on; port 0 for any free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8046", value_parser = listen_address)]
    pub listen: SocketAddr,
    #[arg(long, hide = true, value_parser = renamed_to_listen)]
    address: Option<Infallible>,
    #[arg(long, hide = true, value_parser = renamed_to_listen)]
    port: Option<Infallible>,
    /// Require this token (16 or more letters and digits); default: STACKLAB_TOKEN in the environment, which other
    /// users cannot read, as they can arguments, or a random one
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Serve Prometheus at /metrics: means, differences and verdicts of the records that changed last
    #[arg(long)]
    pub metrics: bool,
}

pub(crate) fn serve(options: ServeOptions) -> Result<(), Failure> {
    let ServeOptions { folder, fleet, listen, token, metrics, .. } = options;
    let fleet = served_store(fleet)?;
    let token = match token {
        Some(token) => Some(token),
        None => read_variable("STACKLAB_TOKEN")?,
    };
    Ok(stacklab_serve::serve(&Settings { folder, fleet, listen, token, metrics })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct ServeCommandLine {
        #[command(flatten)]
        options: ServeOptions,
    }

    #[cfg(feature = "fleet")]
    fn read_store(args: &[&str]) -> Result<Option<String>, String> {
        let line = ServeCommandLine::try_parse_from([&["serve", "records"], args].concat()).unwrap();
        served_store(line.options.fleet).map_err(|failure| failure.printable_reason())
    }

    #[test]
    #[cfg(feature = "fleet")]
    fn a_password_of_the_store_is_refused_in_arguments() {
        assert_eq!(read_store(&[]).unwrap(), None);
        assert_eq!(read_store(&["--fleet", "fleet.db"]).unwrap().as_deref(), Some("fleet.db"));
        let refused = read_store(&["--fleet", "postgres://lab:secret@db.example.org/lab"]).unwrap_err();
        assert!(refused.contains("STACKLAB_STORE") && !refused.contains("secret"), "{refused}");
    }

    fn read_place(args: &[&str]) -> Result<String, String> {
        match ServeCommandLine::try_parse_from([&["serve"], args].concat()) {
            Ok(line) => Ok(line.options.listen.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn serve_listens_where_listen_says() {
        for (text, expected) in [
            ("192.0.2.1:9000", "192.0.2.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("[::]:9000", "[::]:9000"),
            ("::", "[::]:8046"),
            ("[::1]", "[::1]:8046"),
        ] {
            assert_eq!(read_place(&["--listen", text]).as_deref(), Ok(expected));
        }
        assert_eq!(read_place(&[]).as_deref(), Ok("127.0.0.1:8046"));
        assert!(read_place(&["--listen", "host:9000"]).unwrap_err().contains("expected ADDR:PORT"));
        for old in [["--port", "0"], ["--address", "::"]] {
            assert!(read_place(&old).unwrap_err().contains("renamed to --listen ADDR:PORT"));
        }
    }
}

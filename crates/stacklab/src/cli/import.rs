//! The options of `stacklab import`.

use crate::cli::quantities::{bytes, compared};
use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use stacklab_import::Format;
use stacklab_model::{Family, Metric, Transport};
use std::path::PathBuf;

/// Options of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// Result files of iperf3, iperf, netperf, D-ITG, flent or `stacklab export`
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The record to create; it must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The format of all files; default: detected from each file's content
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub format: Option<Format>,
    /// Address family, if a file does not state it
    #[arg(long, value_name = "FAMILY")]
    pub family: Option<Family>,
    /// Transport protocol, if a file does not state it
    #[arg(long, value_name = "TRANSPORT")]
    pub transport: Option<Transport>,
    /// Bytes per send call, if a file does not state them
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub size: Option<u32>,
    /// Margin in per cent: smaller differences of rates and times are equivalent
    #[arg(long, value_name = "PERCENT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub margin: u8,
    /// Compare only this metric; may be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = compared)]
    pub metrics: Vec<Metric>,
    /// Title of reports
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).map(|name| {
        let named = Format::ALL.into_iter().find(|format| format.name() == name);
        named.expect("only these names are possible")
    })
}

//! What is made of a record: report, rows, page.

use clap::Args;
use std::path::PathBuf;

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// The record
    #[arg(value_name = "RESULT")]
    pub record: PathBuf,
    /// text, markdown, csv or json; html, one file with everything to look at; or latex, which is of the tables of
    /// --difference
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: String,
    /// One figure as svg, png or pdf, for a paper; `list` names those that there are
    #[arg(long, value_name = "NAME", conflicts_with = "difference")]
    pub figure: Option<String>,
    /// Write into this file, and not on standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the tables that papers print instead: both arms with their difference by this formula, and the standard
    /// deviations, as text, markdown, latex or csv
    #[arg(long, value_name = "FORMULA", value_parser = ["symmetric", "lower", "higher", "points"])]
    pub difference: Option<String>,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The record
    #[arg(value_name = "RESULT")]
    pub record: PathBuf,
    /// csv or parquet
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub format: String,
    /// The slices of interleaved trials, in place of metrics: a row for each slice and host
    #[arg(long)]
    pub slices: bool,
    /// Write into this file, and not on standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// The folder with the records
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: std::net::IpAddr,
    /// The port to listen on; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 8046)]
    pub port: u16,
    /// Ask for this token (16 or more letters and digits), on loopback too; elsewhere one is made where none is named
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
}

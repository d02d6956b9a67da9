//! `stacklab reference`.

use crate::failure::Failure;
use crate::output::{print_text, width};
use crate::quantities::format;
use clap::{Args, Subcommand};
use stacklab_model::wifi::{Band, Guard, RadioSettings, Width};
use stacklab_published::{Reference, airtime, audit, audit_blocks, audit_json, list, show, study};
use stacklab_report::{OutputFormat, text};

/// The subcommands of `reference`.
#[derive(Debug, Subcommand)]
pub(crate) enum ReferenceCommand {
    /// List the studies with the number of figures, stated differences and findings
    List,
    /// Print a study's tables, stated differences and findings
    Show(ShowOptions),
    /// Recompute every stated difference by each formula, and print which formula reproduces it
    Audit(AuditOptions),
    /// Print the capacity of a Wi-Fi channel by the airtime model (802.11n), for each family, size and security
    Airtime(AirtimeOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ShowOptions {
    /// The study; see: stacklab reference list
    #[arg(value_name = "STUDY")]
    pub study: String,
}

#[derive(Debug, Args)]
pub(crate) struct AuditOptions {
    /// text, or json: an object for each stated difference
    #[arg(long, value_name = "FORMAT", value_parser = format(&["text", "json"]), default_value = "text")]
    pub format: OutputFormat,
}

/// Options of `reference airtime`. The default is the channel of the study kolahi2011wlan.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AirtimeOptions {
    /// Frequency band, GHz: 2.4 or 5
    #[arg(long, value_name = "BAND", default_value = "2.4")]
    pub band: Band,
    /// Channel width, MHz: 20 or 40
    #[arg(long, value_name = "WIDTH", default_value = "40")]
    pub width: Width,
    /// Guard interval: long or short
    #[arg(long, value_name = "GUARD", default_value = "short")]
    pub guard: Guard,
    /// Modulation and coding scheme, 0 to 15
    #[arg(long, value_name = "INDEX", default_value_t = 15)]
    pub mcs: u8,
}

/// Lists, shows or audits published studies; prints the airtime model.
pub(crate) fn reference(command: &ReferenceCommand) -> Result<(), Failure> {
    let all = Reference::built_in()?;
    print_text(&match command {
        ReferenceCommand::List => text(&list(&all), width()),
        ReferenceCommand::Show(options) => {
            text(&show(study(&options.study).map_err(Failure::usage)?, &all), width())
        }
        ReferenceCommand::Audit(options) => {
            let audited = audit(&all.claims);
            match options.format {
                OutputFormat::Json => audit_json(&audited),
                _ => text(&audit_blocks(&audited), width()),
            }
        }
        ReferenceCommand::Airtime(options) => {
            let AirtimeOptions { band, width: channel, guard, mcs } = *options;
            let settings = RadioSettings { band, width: channel, guard, mcs, ..RadioSettings::default() };
            text(&airtime(&settings).map_err(Failure::usage)?, width())
        }
    })
}

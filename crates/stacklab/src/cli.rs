//! The command line.

use crate::commands::compare::FailOn;
use crate::measurement::options::MeasureOptions;
use clap::{Args, Parser, Subcommand};
use stacklab_agent::AgentOptions;
use stacklab_model::{Mechanism, Metric, System};
use stacklab_report::Format;
use stacklab_testbed::Placement;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    something else failed
  2    the command line or the study file is wrong
  3    the testbed cannot be made on this machine (see: stacklab doctor)
  4    a record cannot be made, read or written
  5    a host failed in the middle of a campaign, or no agent can be reached there
  6    the campaign ended without a valid run
  7    the single measurement (stacklab measure) is not valid
  8    compare --fail-on found a worse figure
  130  interrupted; what was measured is kept";

/// What IPv6, another network stack or a transition mechanism costs or gains, and how sure that is.
#[derive(Debug, Parser)]
#[command(name = "stacklab", version, after_help = EXIT_CODES, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a study: build its testbed, measure until the intervals are narrow enough, report
    #[command(after_help = "\
Examples:
  stacklab run                                     the quickstart: IPv4 beside IPv6 on this machine
  stacklab run studies/quickstart.toml --scale standard
  stacklab run my.toml --out my.stacklab --seed 7
  stacklab run --set 'testbed.rate=100 Mbit/s' --set 'factors.size=[64, 1408]'
  stacklab run --resume --out my.stacklab          go on with a campaign that was ended")]
    Run(RunOptions),
    /// Show what a study would measure, in which order, and the time it may take
    #[command(after_help = "\
Examples:
  stacklab plan
  stacklab plan my.toml --scale paper")]
    Plan(StudyOptions),
    /// Print the findings of a record
    #[command(after_help = "\
Examples:
  stacklab report my.stacklab
  stacklab report my.stacklab --format csv > my.csv
  stacklab report my.stacklab --format html --out my.html
  stacklab report my.stacklab --figure list
  stacklab report my.stacklab --figure throughput-tcp-segment --format pdf --out throughput.pdf
  stacklab report my.stacklab --format latex       tables as papers print them
  stacklab report my.stacklab --format markdown --difference lower")]
    Report(ReportOptions),
    /// Write a record's runs as rows for other programs: one for each run and metric
    #[command(after_help = "\
Examples:
  stacklab export my.stacklab > runs.csv
  stacklab export my.stacklab --format parquet --out runs.parquet

docs/export.md says what each column holds.")]
    Export(ExportOptions),
    /// Put two records side by side: two kernels, two machines, before and after
    #[command(after_help = "\
Examples:
  stacklab compare before.stacklab after.stacklab
  stacklab compare a.stacklab b.stacklab --metric throughput --metric rtt
  stacklab compare main.stacklab change.stacklab --fail-on worse=5%
  stacklab compare a.stacklab b.stacklab --format csv > ab.csv

What both records measured is compared: the same cells by the same metrics. Runs are not paired. With --fail-on the exit
code is 8 where the whole 95 % interval of a figure is worse than that.")]
    Compare(CompareOptions),
    /// Look up what published studies print, and check the differences that they state
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab reference list                          the studies, and what is known of each
  stacklab reference show kolahi2009lan            its tables, differences and findings
  stacklab reference audit                         every stated difference, recomputed
  stacklab reference audit --format json"
    )]
    Reference(ReferenceCommand),
    /// Run a published study's preset, then test each of the study's findings on what was measured
    #[command(after_help = "\
Examples:
  stacklab replicate soorty2013linux                some minutes, on namespaces of this machine
  stacklab replicate kolahi2009lan --scale standard --out lan.stacklab
  stacklab replicate kolahi2009lan --from lan.stacklab --format json

A finding holds, does not hold, or cannot be told: neither is a failure, and the exit code is 0. What the study had and
this testbed has not is printed first.")]
    Replicate(ReplicateOptions),
    /// Measure once, by hand, to a host where `stacklab agent --listen` runs
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab agent --listen                          on the other host
  stacklab measure tcp HOST                        then here: throughput for 10 s
  stacklab measure udp HOST -b 100M -R -t 30       from there to here, at a rate
  stacklab measure echo HOST --json                round trips, as JSON
See what each can be told: stacklab measure tcp --help"
    )]
    Measure(MeasureOptions),
    /// Show the records of a folder as a web page: campaigns, two side by side, and one in progress as it goes
    #[command(after_help = "\
Examples:
  stacklab serve                                   this folder, at http://127.0.0.1:8046/
  stacklab serve records --port 9000
  stacklab serve records --address ::              for others too: they need the token that is printed

It reads records and changes none. Served elsewhere than on loopback it asks for a token; it does not encrypt, so let it
listen on networks that you trust.")]
    Serve(ServeOptions),
    /// Say what this machine can do, and how to get what is missing
    Doctor,
    /// Fetch what other systems boot from (gvisor, linux-6.1, uml ..) into a folder of stacklab's own
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab image list                              what there is, and what of it is here
  stacklab image get linux-6.1                     Debian's newest kernel of that series, checked by apt
  stacklab image get gvisor
  stacklab image build uml-full                    user-mode Linux with all mechanisms between networks; four minutes
  stacklab image build uml-mine --tree ~/linux     of a kernel that you work on
  stacklab image check                             compare all files with what was fetched

The folder is STACKLAB_CACHE, or ~/.cache/stacklab. Nothing is installed on the machine."
    )]
    Image(ImageCommand),
    /// Build a study's testbed for use by hand (ping, iperf3, tcpdump on its hosts), and remove it again
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab lab up studies/mechanisms.toml --mechanism nat64
  stacklab lab enter sender ping -c 3 2001:2:0:64::c612:201
  stacklab lab enter router1 tcpdump -ni st1
  stacklab lab enter receiver                      a shell there
  stacklab lab down

Its hosts are namespaces of this kernel. One testbed is up at a time; it goes with its process in the background, whatever ends that."
    )]
    Lab(LabCommand),
    /// Be a host inside a virtual machine: wait for the coordinator at a port (used by stacklab itself, and in disk images)
    #[command(after_help = "\
In a disk image of your own, start it as root when the system is up, for example by a unit of systemd's:
  ExecStart=/usr/local/bin/stacklab guest")]
    Guest(GuestOptions),
    /// Be a host: serve whoever measures to this machine (--listen), or standard input (used by stacklab itself)
    #[command(after_help = "\
Examples:
  stacklab agent --listen                          any address, port 5202
  stacklab agent --listen 127.0.0.1 --once
  stacklab agent --listen '[2001:db8::7]:7000'

An agent that listens asks for no password: whoever reaches its port can have it send traffic anywhere. Let it listen on
test networks only, or on an address that only they reach. Ctrl-C ends it.")]
    Agent(AgentOptions),
    /// Print the JSON Schema of study files, for editors
    Schema,
    /// Print a shell's completion script
    #[command(
        after_help = "Example:\n  stacklab completions bash > ~/.local/share/bash-completion/completions/stacklab"
    )]
    Completions(CompletionsOptions),
    /// Write the manual pages into a folder
    Man(ManOptions),
}

/// Which study, and how it is changed.
#[derive(Debug, Args)]
pub struct StudyOptions {
    /// Study file, or the name of a published study (see: stacklab reference list); without one, the built-in quickstart
    #[arg(value_name = "STUDY")]
    pub study: Option<PathBuf>,
    /// How much effort: the study's table of that name is merged over it (quick, standard, paper)
    #[arg(long, value_name = "SCALE")]
    pub scale: Option<String>,
    /// Seed of the plan's random order; without one, a new one, which is recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change one key of the study, for example runs.min=20; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Which study.
    #[command(flatten)]
    pub study: StudyOptions,
    /// The record to write; without it, one in this folder named after the study and the time
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Put this program on machines that ssh reaches and that have none of this version, without asking
    #[arg(long)]
    pub copy_agent: bool,
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Go on with the record named by --out, or with the newest one in this folder; study, scale, settings and seed
    /// are those it was begun with
    #[arg(long)]
    pub resume: bool,
}

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

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The record compared with
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The record compared
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// End with exit code 8 where B is worse than A by more than so many per cent: worse=5%
    #[arg(long, value_name = "worse=PERCENT")]
    pub fail_on: Option<FailOn>,
    /// Compare this metric only; may be given again
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<Metric>,
    /// text, markdown, csv or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

/// Options of `replicate`.
#[derive(Debug, Args)]
pub struct ReplicateOptions {
    /// The study; see: stacklab reference list
    #[arg(value_name = "STUDY")]
    pub study: String,
    /// How much effort: quick (minutes), standard (until intervals meet the target), paper (as many runs and packets)
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    pub scale: String,
    /// Seed of the plan's random order; without one, a new one, which is recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change one key of the preset, for example runs.min=20; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The record to write; without it, one in this folder named after the study and the time
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Measure nothing: test the findings on this record
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "settings", "seed", "scale"])]
    pub from: Option<PathBuf>,
    /// text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TextOrJson,
}

/// The verbs of `reference`.
#[derive(Debug, Subcommand)]
pub enum ReferenceCommand {
    /// List the studies with the number of figures, stated differences and findings
    List,
    /// Print a study's figures as its tables, the differences that it states and its findings
    Show(ShowOptions),
    /// Recompute every stated difference by each formula, and say which one gives what is printed
    Audit(AuditOptions),
}

/// Options of `reference show`.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// The study; see: stacklab reference list
    #[arg(value_name = "STUDY")]
    pub study: String,
}

/// Options of `reference audit`.
#[derive(Debug, Args)]
pub struct AuditOptions {
    /// text, or json: an object for each stated difference
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TextOrJson,
}

/// What an answer that is no report of a record is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TextOrJson {
    /// For a terminal.
    Text,
    /// For programs.
    Json,
}

/// The verbs of `image`.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// List the systems, and which of them are here in which version
    List,
    /// Fetch the newest image of a system
    Get(ImageGetOptions),
    /// Build a user-mode Linux: of Debian's stable source with all mechanisms between networks and Jool, or of a tree of your own
    Build(ImageBuildOptions),
    /// Read all files of the images that are here and compare them with what was fetched
    Check,
}

/// Options of `image get`.
#[derive(Debug, Args)]
pub struct ImageGetOptions {
    /// gvisor, uml, or linux- with a series: linux-5.10, linux-6.1, linux-6.12, linux-7.2; several may be given
    #[arg(value_name = "SYSTEM", required = true)]
    pub systems: Vec<System>,
}

/// Options of `image build`.
#[derive(Debug, Args)]
pub struct ImageBuildOptions {
    /// uml- and a name: what studies and --in-vm call it
    #[arg(value_name = "uml-NAME")]
    pub system: System,
    /// A folder with the source of a Linux kernel, which nothing is written to; without it, Debian's stable source is
    /// fetched
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
}

/// The verbs of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Build a study's testbed and leave it up
    Up(LabUpOptions),
    /// Run a command, or a shell, on a host of the testbed that is up: sender, receiver, and router1, router2 between
    /// them
    Enter(LabEnterOptions),
    /// Remove the testbed that is up
    Down,
    /// Hold a testbed (used by stacklab itself)
    #[command(hide = true)]
    Hold(LabUpOptions),
    /// Become a command on a host, inside a guest (used by stacklab itself)
    #[command(hide = true)]
    Inside(LabInsideOptions),
}

/// Options of `lab up`.
#[derive(Debug, Args)]
pub struct LabUpOptions {
    /// Which study.
    #[command(flatten)]
    pub study: StudyOptions,
    /// Of a study with routers, what is between them; without it, the study's first mechanism
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<Mechanism>,
    #[command(flatten)]
    pub place: PlaceOptions,
}

/// Where the testbeds of a study with routers are.
#[derive(Debug, Clone, Args)]
pub struct PlaceOptions {
    /// Build the whole testbed of a study with routers inside a guest whatever this kernel can do: inside the fastest that is
    /// here, or inside the one named (uml, uml-NAME, linux-6.1 ..); without it, only where this kernel lacks what a mechanism needs
    #[arg(long, value_name = "GUEST", num_args = 0..=1, require_equals = true, default_value = "where-needed",
        default_missing_value = "any", hide_default_value = true)]
    pub in_vm: Placement,
}

/// Options of `lab inside`.
#[derive(Debug, Args)]
pub struct LabInsideOptions {
    /// A process in the host's network namespace
    pub host: u32,
    /// Where the command starts
    pub folder: PathBuf,
    /// The command with its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// Options of `lab enter`.
#[derive(Debug, Args)]
pub struct LabEnterOptions {
    /// The host
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The command with its arguments; without one, your shell
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Options of `guest`.
#[derive(Debug, Args)]
pub struct GuestOptions {
    /// The device that leads to the coordinator; without it, the virtual machine's port named stacklab
    #[arg(long, value_name = "DEVICE")]
    pub channel: Option<PathBuf>,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// The folder, which must exist
    pub folder: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

//! The command line.

use crate::commands::{
    doctor, explain, eyeballs, fleet, image, import, lab, measure, path, published, regress, report, run,
    serve, study, tools,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    something else failed
  2    the command line or the study file is wrong
  3    cannot build the testbed or an image, or cannot sample the CPUs (see: stacklab doctor)
  4    cannot create, read or write a record
  5    a host failed during a campaign, or its agent, server or reflector cannot be reached
  6    no valid run, or no data for the requested output; or a family does not get \
through (measure --against), or nothing arrived (measure udp) or came back (measure echo)
  7    the single measurement (stacklab measure) is not valid
  8    the candidate or the second record is worse (run, compare and eyeballs --fail-on)
  9    a request to a host failed over one of the families (stacklab path)
  10   the ratio of the families has drifted (stacklab path --watch)
  11   a file of another tool cannot be read, or has nothing to import (stacklab import)
  12   other load disturbed one of two records only, and the second one looks worse, or lacks a figure that \
the first one has (compare --fail-on)
  130  interrupted; results so far are kept
`stacklab regress` has those of `git bisect run`: see its --help.";

/// Measures the cost of IPv6, of other network stacks and of transition mechanisms, with confidence intervals.
#[derive(Debug, Parser)]
#[command(name = "stacklab", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a study: build the testbed, measure until the verdicts are settled, report
    #[command(after_help = "\
Examples:
  stacklab run                                     the quickstart: IPv4 beside IPv6 on this machine
  stacklab run studies/quickstart.toml --scale standard
  stacklab run my.toml --out my.stacklab --seed 7
  stacklab run --set 'testbed.rate=100 Mbit/s' --set 'factors.size=[64, 1408]'
  stacklab run builds.toml --fail-on worse=5%      exit code 8 if the candidate is worse
  stacklab run --resume --out my.stacklab          resume an interrupted campaign")]
    Run(run::RunOptions),
    /// List and print built-in studies, create a study, or print the reference of study files
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab study list
  stacklab study show quickstart > my.toml         all comments included
  stacklab study new my.toml                       a small one
  stacklab study reference                         docs/study.md: every key, level, probe and metric"
    )]
    Study(study::StudyCommand),
    /// Print the runs of a study, their order and the estimated time
    #[command(after_help = "\
Examples:
  stacklab plan
  stacklab plan my.toml --scale paper")]
    Plan(study::StudyOptions),
    /// Report the results of a record
    #[command(after_help = "\
Examples:
  stacklab report my.stacklab
  stacklab report my.stacklab --format csv > my.csv
  stacklab report my.stacklab --format html --out my.html
  stacklab report my.stacklab --figure list
  stacklab report my.stacklab --figure throughput-tcp-payload --format pdf --out throughput.pdf
  stacklab report my.stacklab --format latex       tables for a paper
  stacklab report my.stacklab --format markdown --difference lower")]
    Report(report::ReportOptions),
    /// Export a record as rows for other programs, one per run and metric
    #[command(after_help = "\
Examples:
  stacklab export my.stacklab > runs.csv
  stacklab export my.stacklab --format parquet --out runs.parquet

docs/export.md describes the columns.")]
    Export(report::ExportOptions),
    /// Import result files of iperf3, iperf, netperf, D-ITG, flent or `stacklab export` into a record
    #[command(after_help = "\
Examples:
  stacklab import *.json --out lab.stacklab        tests of iperf3 -J
  stacklab import v4.csv --family ipv4 --transport tcp --size 128K --out v4.stacklab
  stacklab import runs.csv --out again.stacklab    rows of stacklab export

Values that a file does not state are missing. Tests of other tools are not paired: they get no verdict, and unpaired \
differences are reported. docs/import.md lists what is read of each format.")]
    Import(import::ImportOptions),
    /// Compare two records: two kernels, two machines, before and after a change
    #[command(after_help = "\
Examples:
  stacklab compare before.stacklab after.stacklab
  stacklab compare a.stacklab b.stacklab --metric throughput --metric rtt
  stacklab compare main.stacklab change.stacklab --fail-on worse=5%
  stacklab compare a.stacklab b.stacklab --format csv > ab.csv

Cells and metrics that both records have are compared. Runs are not paired. With --fail-on the \
exit code is 8 if the whole interval of a claim is worse than that, and 12 if other load may be the \
reason, because it disturbed more than a tenth of the runs of one record only.")]
    Compare(report::CompareOptions),
    /// Explain in which stage of the network stack two arms differ, in nanoseconds per message
    #[command(after_help = "\
Examples:
  stacklab explain                                 UDP of 128 bytes, IPv6 against IPv4, on this machine
  stacklab explain tcp --size 1408 --functions
  stacklab explain udp --factor io                 one system call for many datagrams against one each
  stacklab explain udp --factor mechanism          translated by a program (nat64) against native
  stacklab explain udp --factor size --levels 128,1408
  stacklab explain tcp --format html > why.html    waterfall and flame graph
  stacklab explain my.toml --format json           the first comparison of a study of your own
  stacklab explain --exact --functions             instructions per message by function, without root
  stacklab explain udp --instructions --out udp.stacklab   nanoseconds and instructions in one record
  stacklab explain --exact udp --factor mechanism --levels native,6in4
  stacklab explain --exact udp --path link --family ipv6 --rules 0,100   nftables rules

stacklab samples the CPUs during a campaign. That needs root, or CAP_PERFMON and CAP_SYSLOG, and hosts that are \
namespaces of this kernel. docs/explain.md describes the method and the columns. --exact counts instructions in QEMU's emulator instead; \
docs/exact.md describes it.")]
    Explain(explain::ExplainOptions),
    /// Compare two Linux kernels by instructions per message, for `git bisect run` and continuous integration
    #[command(after_help = "\
Examples:
  stacklab regress --baseline v6.12 --candidate .           your tree against a commit, both built
  git bisect run stacklab regress --baseline v6.12 --candidate . --fail-if 'ipv6 > 0.5 %'
  stacklab regress --baseline linux-6.1 --candidate bzImage --format markdown
  stacklab regress --verify v6.12 v6.13                     before a bisect: are the ends good and bad?

Exit codes, as git bisect run reads them:
  0    good: no condition of --fail-if is met
  1    bad
  125  the candidate cannot be built, or does not boot: git skips it
  128  the request is wrong, or this machine or the baseline cannot be counted: git stops
  130  interrupted: git stops

It works as an ordinary user, without KVM. docs/tutorial-kernel.md begins with it.")]
    Regress(regress::RegressOptions),
    /// Find the commit that changed the instructions per message, between a good and a bad commit of a Linux tree
    #[command(after_help = "\
Examples:
  stacklab bisect v6.12 v6.13 ~/linux
  stacklab bisect v6.12 HEAD --fail-if 'tcp ipv6 > 20' --format markdown

It verifies both ends, searches by halves as git bisect does, and compares the found commit with its parent. The \
repository is only read: commits are checked out in stacklab's cache.")]
    Bisect(regress::BisectOptions),
    /// Print figures of published studies, audit the differences that they state, or print the airtime model
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab reference list                          the studies
  stacklab reference show kolahi2009lan            its tables, differences and findings
  stacklab reference audit                         every stated difference, recomputed
  stacklab reference audit --format json
  stacklab reference airtime --mcs 7 --width 20    the capacity of a Wi-Fi channel"
    )]
    Reference(published::ReferenceCommand),
    /// Run a published study's preset and test the study's findings
    #[command(after_help = "\
Examples:
  stacklab replicate soorty2013linux                some minutes, on namespaces of this machine
  stacklab replicate kolahi2009lan --scale standard --out lan.stacklab
  stacklab replicate kolahi2009lan --from lan.stacklab --format json

A finding `holds`, goes `the other way`, is `larger than stated`, or has one of the weaker outcomes of \
docs/published.md; the exit code is 0 in each case. Differences from the study's testbed are printed first.")]
    Replicate(published::ReplicateOptions),
    /// Measure once to a host that runs `stacklab agent --listen`
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab agent --listen                          on the other host
  stacklab measure tcp HOST                        then here: throughput for 10 s
  stacklab measure udp HOST -b 100M -R -t 30       from there to here, at a rate
  stacklab measure echo HOST --json                round trips, as JSON
Options of each: stacklab measure tcp --help"
    )]
    Measure(measure::MeasureOptions),
    /// Compare the families to a dual-stack host, without an agent: reachability, delays, errors
    #[command(after_help = "\
Examples:
  stacklab path example.org                        a minute, one probe per second, at most 10 MB
  stacklab path https://example.org/big --format json
  stacklab path --pairs hosts.txt                  lines of IPv4 address, IPv6 address and name
  stacklab path example.org --watch --format csv   until Ctrl-C; drifts on standard error

The exit code is 9 if a family does not work, and 10 if the ratio of the families has drifted: docs/path.md.")]
    Path(path::PathOptions),
    /// Test Happy Eyeballs of a program: the family that it takes, and how long it waits for the other
    #[command(after_help = "\
Examples:
  stacklab eyeballs -- curl http://{host}/
  stacklab eyeballs --scenarios all --repeat 20 -- wget -qO- http://{host}/
  stacklab eyeballs --limit 30 --format json -- ssh {host}
  stacklab eyeballs --repeat 14 --fail-on worse=5% -- old {host} --against -- new {host}

The program runs in a network namespace in which stacklab is the network and the resolver. Its times are those of \
packets and DNS queries: docs/eyeballs.md.")]
    Eyeballs(eyeballs::EyeballsOptions),
    /// Serve the records of a folder as a web page, with the campaign in progress
    #[command(after_help = "\
Examples:
  stacklab serve                                   this folder, at http://127.0.0.1:8046/
  stacklab serve records --listen :9000
  stacklab serve records --listen [::]:8046       for other hosts too, with the printed token
  stacklab serve --fleet fleet.db                  the campaigns of a fleet too

It only reads. Requests need the token in the printed address. The connection is not encrypted: let \
it listen on networks that you trust.")]
    Serve(serve::ServeOptions),
    /// Print what this machine supports, and how to get the rest
    #[command(after_help = "\
Examples:
  stacklab doctor
  stacklab doctor --verbose                        why something is missing, with the kernel's error
  stacklab doctor --json")]
    Doctor(doctor::DoctorOptions),
    /// Fetch or build images of other systems (gvisor, linux-6.1, uml ..) in stacklab's cache
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab image list                              available and installed images
  stacklab image get linux-6.1                     Debian's newest kernel of that series, checked by apt
  stacklab image get gvisor
  stacklab image build uml-full                    user-mode Linux with all transition mechanisms (five minutes, more on a busy machine)
  stacklab image build uml-mine --tree ~/linux     from your kernel tree
  stacklab image check                             compare all files with the sums taken when fetched

The cache is STACKLAB_CACHE, or stacklab in XDG_CACHE_HOME, or ~/.cache/stacklab. Nothing is installed on the machine."
    )]
    Image(image::ImageCommand),
    /// Build a study's testbed for manual use (ping, iperf3, tcpdump on its hosts), and remove it
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab lab up studies/mechanisms.toml --mechanism nat64
  stacklab lab enter sender ping -c 3 2001:2:0:64::c612:201
  stacklab lab enter router1 tcpdump -ni st1
  stacklab lab enter receiver                      a shell there
  stacklab lab down

Its hosts are namespaces of this kernel; of a guest's with --in-vm, or if this kernel lacks a module. It has no \
Wi-Fi and no other systems. `enter` ends with the command's own exit code. One testbed is up at a time; it is \
removed when its background process ends."
    )]
    Lab(lab::LabCommand),
    /// Run as the agent in a guest (used by stacklab itself, and in disk images)
    #[command(after_help = "\
In your disk image, start it as root when the system is up, for example from a systemd unit:
  ExecStart=/usr/local/bin/stacklab guest")]
    Guest(tools::GuestOptions),
    /// End the programs of hosts once stacklab has been killed (used by stacklab itself)
    #[command(hide = true)]
    Watch {
        /// Processes in the namespaces of these hosts
        hosts: Vec<u32>,
    },
    /// Run an agent: for remote coordinators (--listen), or on standard input (used by stacklab itself)
    #[command(after_help = "\
Examples:
  stacklab agent --listen                          any address, port 5202
  stacklab agent --listen 127.0.0.1 --once
  stacklab agent --listen '[2001:db8::7]:7000'
  stacklab agent --listen --tls --tls-key tls.pem
  stacklab agent --stamp                           a STAMP reflector: docs/stamp.md
  stacklab agent --listen --iperf3                 a server for clients of iperf3, port 5201

An agent that listens serves whoever knows its key. It generates and prints a key, or takes one from a file or \
STACKLAB_KEY. It sends to the coordinator's own addresses only, for at most --max-duration seconds per trial. Without --tls \
the connection is not encrypted (SECURITY.md). Ctrl-C ends it.")]
    Agent(tools::AgentCommand),
    /// Measure one campaign over many pairs of hosts, and give verdicts over all of them
    #[command(
        subcommand,
        after_help = "\
Examples:
  stacklab fleet agent --name a --label site=north     on each host, or several times on this one
  stacklab fleet run quickstart --pairs 'site=north -> site=south' --blocks 20
  stacklab fleet status
  stacklab fleet report --json
  stacklab fleet report --pair 0 --out pair.stacklab   a record for all other commands

docs/fleet.md describes stores, agents and verdicts."
    )]
    Fleet(fleet::FleetCommand),
    /// Remove the program that `run --copy-agent` copied to other machines
    #[command(after_help = "\
Example:
  stacklab ssh-clean lab@server

It removes the files stacklab-* in ~/.cache/stacklab/bin there, of any version.")]
    SshClean {
        /// The machines, as ssh or a study names them (USER@HOST, ssh:USER@HOST)
        #[arg(value_name = "HOST", required = true)]
        hosts: Vec<String>,
    },
    /// Print the JSON Schema of study files, for editors
    Schema,
    /// Print a shell's completion script
    #[command(
        after_help = "Example:\n  stacklab completions bash > ~/.local/share/bash-completion/completions/stacklab\n\nThe \
                      script offers the built-in studies, their levels, metrics, factors, formats and other names too \
                      (bash, fish, zsh)."
    )]
    Completions {
        /// The shell
        #[arg(value_name = "bash|elvish|fish|powershell|zsh", hide_possible_values = true)]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// The folder, which must exist
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn all(command: &clap::Command) -> Vec<&clap::Command> {
        std::iter::once(command).chain(command.get_subcommands().flat_map(all)).collect()
    }

    #[test]
    fn help_paragraphs_are_wrapped_by_the_terminal_only() {
        for command in all(&Cli::command()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let is_prose = pair.iter().all(|line| !line.is_empty() && !line.starts_with(' '));
                assert!(!is_prose, "{}: {pair:?}", command.get_name());
            }
        }
    }
    /// The words of a shell's line, up to a redirection, a pipe or a comment.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut word = None::<String>;
        let mut quote = None;
        for letter in line.chars() {
            match (quote, letter) {
                (Some(open), _) if letter == open => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                (None, '>' | '|' | '&' | '#') => break,
                _ => word.get_or_insert_default().push(letter),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn documented_commands_are_accepted() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let docs = std::fs::read_dir(format!("{root}/docs")).unwrap().map(|file| file.unwrap().path());
        let pages = docs.filter(|page| page.extension().is_some_and(|ending| ending == "md"));
        let mut commands = 0;
        let mut wrong = Vec::new();
        for page in pages.chain([format!("{root}/README.md").into()]) {
            let text = std::fs::read_to_string(&page).unwrap().replace("\\\n", " ");
            let mut fenced = false;
            for line in text.lines() {
                fenced ^= line.starts_with("```");
                if !fenced && !line.starts_with("    ") {
                    continue;
                }
                let line = line.trim_start();
                let line = line.strip_prefix("$ ").unwrap_or(line);
                let line = line.strip_prefix("sudo ").unwrap_or(line);
                // Behind two spaces: what it does.
                let Some(line) = line.starts_with("stacklab ").then(|| line.split("  ").next().unwrap())
                else {
                    continue;
                };
                commands += 1;
                // A folder that exists, as the option wants.
                if let Err(error) = Cli::try_parse_from(words(&line.replace("~/linux", "."))) {
                    wrong.push(format!("{}: {line}\n{error}", page.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(commands > 150, "{commands} commands in docs/ and README.md");
    }
}

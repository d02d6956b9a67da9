//! `stacklab measure udp .. --against FAMILY --search LOSS`: the highest load of both families to one host.

use crate::commands::measure::comparison::FamilyComparison;
use crate::commands::measure::options::CommonOptions;
use crate::commands::measure::peers::{BothWays, PeerProgram};
use crate::commands::measure::refuse;
use crate::commands::measure::study::{duration, message_size};
use crate::failure::Failure;
use stacklab_agent::client::Target;
use stacklab_campaign::single::MeasureRequest;
use stacklab_campaign::slow_path::MIN_BLOCKS;
use stacklab_model::{Factor, Family, Length, SearchDevice};
use stacklab_study::Study;
use std::sync::atomic::AtomicBool;

/// Searches both families together, until the verdict is sure or the time is over, and prints it. `loss_ppm` is the
/// share of messages that may be lost or late, in millionths.
pub(super) fn search(
    common: &CommonOptions,
    request: &MeasureRequest,
    target: &Target<'_>,
    baseline: Family,
    loss_ppm: u32,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    let comparison = FamilyComparison::new(common, study_text(common, request, baseline, loss_ppm)?)?;
    let peer = &PeerProgram::Agent;
    let ways = BothWays::find(target, peer)?;
    if !ways.leave_this_machine() {
        return Err(Failure::usage(
            "HOST is this machine: no device between the two could lose a message. Name another machine, or try \
             `stacklab run search`, which builds two routers",
        ));
    }
    let mut connected = ways.connect(target, peer, common.reverse, interrupted)?;
    let rows = connected.hosts.hosts()?;
    comparison.measure(&mut *connected.hosts, rows)
}

fn study_text(
    common: &CommonOptions,
    request: &MeasureRequest,
    baseline: Family,
    loss_ppm: u32,
) -> Result<String, Failure> {
    let refused = [
        (request.flows > 1, "several flows (-P)"),
        (request.warmup_ns > 0, "a warm-up (-O)"),
        (request.io.is_some(), "--io"),
    ];
    refuse(&refused, " cannot be combined with --search: leave one out")?;
    let (Length::Time(time_ns) | Length::Packets(time_ns)) = request.length;
    let candidate = if baseline == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 };
    let way = if common.reverse { "from" } else { "to" };
    let mut study =
        Study::builder(format!("highest load {way} {}: {candidate} against {baseline}", common.host))
            .set("testbed.offloads", true)
            .levels(Factor::Family, [baseline.name(), candidate.name()])
            .level(Factor::Transport, Some("udp"))
            .level(Factor::SizeOf, Some(request.size_of.name()))
            .level(Factor::Size, Some(message_size(request, false)))
            .level(Factor::SendBuffer, request.tuning.send_buffer)
            .level(Factor::ReceiveBuffer, request.tuning.receive_buffer)
            .level(Factor::Dscp, request.tuning.dscp)
            .set("probe.search.metrics", vec!["load_at_loss"])
            .set("probe.search.device", SearchDevice::Path.name())
            .set("blocks.min", MIN_BLOCKS)
            .set("blocks.max", 1000)
            .set("blocks.budget", duration(time_ns))
            .compare(Factor::Family, [baseline.name(), candidate.name()], Some("1 %"));
    if loss_ppm > 0 {
        study = study.set("probe.search.loss", f64::from(loss_ppm) / 1e6);
    }
    Ok(study.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::measure::MeasureOptions;
    use clap::Parser;
    use stacklab_campaign::sources::StudySource;
    use stacklab_model::{Pacing, Probe, SearchSpec};

    #[derive(Parser)]
    struct SearchCommandLine {
        #[command(subcommand)]
        options: MeasureOptions,
    }

    fn parse_line(line: &str) -> Result<MeasureOptions, String> {
        let words = std::iter::once("measure").chain(line.split_whitespace());
        Ok(SearchCommandLine::try_parse_from(words).map_err(|error| error.to_string())?.options)
    }

    fn spec_of(line: &str) -> Result<(SearchSpec, u64), String> {
        let options = parse_line(line)?;
        let request = options.request();
        let loss_ppm = request.searched_loss_ppm.ok_or("no search")?;
        let text = study_text(options.common(), &request, Family::Ipv4, loss_ppm)
            .map_err(|error| format!("{error:?}"))?;
        let study = StudySource { name: "measure.toml".to_owned(), text }.check(None, &[]);
        let study = study.map_err(|error| error.to_string())?;
        let Some(Pacing::Search(search)) = study.probe(Probe::Search).map(|probe| probe.pacing) else {
            return Err("no search in the study".to_owned());
        };
        Ok((search, study.rule.budget_ns.unwrap_or(0)))
    }

    #[test]
    fn command_line_becomes_a_search() {
        let (search, budget_ns) = spec_of("udp host --against ipv4 --search 0.5% -l 64").unwrap();
        assert_eq!((search.loss_ppm, search.device), (5000, SearchDevice::Path));
        assert_eq!(budget_ns, 120_000_000_000);
        let (search, budget_ns) = spec_of("udp host --against ipv4 --search 0 -t 30").unwrap();
        assert_eq!((search.loss_ppm, budget_ns), (0, 30_000_000_000));
        assert_eq!(spec_of("udp host --against ipv4 --search 0.02").unwrap().0.loss_ppm, 20_000);
    }

    #[test]
    fn options_that_a_search_lacks_are_refused() {
        for (line, reason) in [
            ("udp host --search 0.5%", "--against"),
            ("udp host --against ipv4 --search 100%", "expected a share below 100 %"),
            ("udp host --against ipv4 --search much", "expected a share below 100 %"),
            ("udp host --against ipv4 --search 1% -b 10M", "cannot be used with"),
            (
                "udp host --against ipv4 --search 1% -P 4",
                "several flows (-P) cannot be combined with --search",
            ),
            ("tcp host --against ipv4 --search 1%", "unexpected argument"),
        ] {
            let said = spec_of(line).unwrap_err();
            assert!(said.contains(reason), "{line}: {said}");
        }
    }
}

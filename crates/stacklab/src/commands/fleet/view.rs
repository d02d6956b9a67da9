//! `stacklab fleet status`, `stop`, `agents`, `report`, `export` and `doctor`.

use crate::commands::fleet::{StoreOptions, WireOptions, campaign};
use crate::failure::{Failure, NO_DATA, OTHER};
use crate::output::{print_text, width};
use clap::Args;
use stacklab_campaign::record::conclude;
use stacklab_fleet::store::{BlockCounts, CampaignRow, CampaignState, PairProgress, Store};
use stacklab_fleet::{lake, results};
use stacklab_model::{FleetFindings, count, printable_lines, quote_file, say};
use stacklab_report::{OutputFormat, fleet_json, fleet_text, render};
use stacklab_traffic::host::now_unix_ns;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CampaignOptions {
    /// Name of the campaign; default: the newest one
    #[arg(value_name = "CAMPAIGN")]
    pub campaign: Option<String>,
    #[command(flatten)]
    pub store: StoreOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    #[command(flatten)]
    pub campaign: CampaignOptions,
    /// Write the record of this pair, by its number in `fleet status`, for all commands that read records
    #[arg(long, value_name = "N", requires = "out")]
    pub pair: Option<u32>,
    /// The record to write
    #[arg(long, value_name = "FILE", requires = "pair")]
    pub out: Option<PathBuf>,
    /// Read the folder of `stacklab fleet export --lake` instead of the store
    #[arg(long, value_name = "DIR", conflicts_with_all = ["store", "pair"])]
    pub lake: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "pair")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    #[command(flatten)]
    pub campaign: CampaignOptions,
    /// The folder below which Parquet files are written: runs/campaign=NAME/day=DATE/pair-N.parquet and
    /// comparisons/campaign=NAME/pair-N.parquet. Earlier files of the same pairs are replaced
    #[arg(long, value_name = "DIR")]
    pub lake: PathBuf,
    /// Write the comparisons only: all that a report needs, and far smaller
    #[arg(long)]
    pub without_runs: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    #[command(flatten)]
    pub store: StoreOptions,
    #[command(flatten)]
    pub wire: WireOptions,
}

pub(crate) fn doctor(options: &DoctorOptions) -> Result<(), Failure> {
    let mut found = Store::open(&options.store.place()?)?.safety()?;
    let wire = options.wire.open(None)?;
    found.extend(wire.safety());
    let present = wire.present(&BTreeSet::new())?;
    let now_ns = i64::try_from(now_unix_ns()).unwrap_or(i64::MAX);
    let answer = match present.len() {
        1 => "1 agent answers".to_owned(),
        agents => format!("{agents} agents answer"),
    };
    found.push((present.len() >= 2, format!("{answer}; a fleet needs two")));
    found.extend(present.iter().filter_map(|presence| {
        Some((false, format!("agent {} is not used: {}", presence.agent.name, presence.unusable(now_ns)?)))
    }));
    let mut text = String::new();
    for (is_safe, what) in &found {
        let mark = if *is_safe { "yes" } else { "no " };
        let _ = writeln!(text, "  {mark}  {what}");
    }
    print_text(&printable_lines(&text))?;
    match found.iter().filter(|(safe, _)| !safe).count() {
        0 => Ok(()),
        n => Err(Failure::new(
            OTHER,
            format!("{n} of {} checks failed: the list above says what to do", found.len()),
        )),
    }
}

pub(crate) fn status(options: &CampaignOptions) -> Result<(), Failure> {
    let mut store = Store::open_to_read(&options.store.place()?)?;
    let row = campaign(&mut store, options.campaign.as_deref())?;
    let pairs = store.progress(&row.id)?;
    let state = row.state.name(store.is_over(&row.id)?);
    let mut text = format!("Campaign {}: {state}; {}\n\n", row.id, BlockCounts::of(&pairs));
    let names: Vec<String> = pairs.iter().map(PairProgress::name).collect();
    let wide = names.iter().map(String::len).max().unwrap_or(0).max(4);
    let _ = writeln!(text, "Pair  {:<wide$}  Done  Now  Waiting  Given up  Last failure", "");
    for (pair, name) in pairs.iter().zip(&names) {
        let BlockCounts { done, leased, waiting, given_up } = pair.blocks;
        let number = pair.pair;
        let reason = pair.failure().unwrap_or_default();
        let line = format!(
            "{number:>4}  {name:<wide$}  {done:>4}  {leased:>3}  {waiting:>7}  {given_up:>8}  {reason}"
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    print_text(&text)
}

/// Hands out no more blocks. Those that are being measured are still committed.
pub(crate) fn stop(options: &CampaignOptions) -> Result<(), Failure> {
    let mut store = Store::open(&options.store.place()?)?;
    let row = campaign(&mut store, options.campaign.as_deref())?;
    store.set_state(&row.id, CampaignState::Stopped)?;
    let option = options.store.option();
    say!(
        "stacklab: {} is stopped; continue it with: stacklab fleet run --resume --name {}{option}",
        row.id,
        row.id
    );
    Ok(())
}

pub(crate) fn agents(options: &WireOptions) -> Result<(), Failure> {
    let mut text = String::new();
    for presence in options.open(None)?.present(&BTreeSet::new())? {
        let agent = presence.agent;
        let labels = agent.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let mut line: Vec<String> = labels.chain(agent.addresses.into_values()).collect();
        line.extend(agent.links.iter().map(|link| format!("link {link}")));
        if !presence.kept.is_empty() {
            line.push(format!("keeps {} results", presence.kept.len()));
        }
        let _ = writeln!(text, "{:<16}  stacklab {:<8}  {}", agent.name, agent.version, line.join("  "));
    }
    if text.is_empty() {
        return Err(Failure::new(NO_DATA, "no agent answers: start `stacklab fleet agent` on two hosts"));
    }
    print_text(&printable_lines(&text))
}

pub(crate) fn export(options: &ExportOptions) -> Result<(), Failure> {
    let mut store = Store::open_to_read(&options.campaign.store.place()?)?;
    let row = campaign(&mut store, options.campaign.campaign.as_deref())?;
    let pairs = lake::export(&mut store, &row, &options.lake, !options.without_runs)?;
    if pairs == 0 {
        return Err(no_result(&row));
    }
    say!(
        "{} of campaign {}: {} (stacklab fleet report {} --lake {})",
        count(pairs, "pair"),
        row.id,
        options.lake.display(),
        row.id,
        quote_file(&options.lake)
    );
    Ok(())
}

pub(crate) fn report(options: &ReportOptions) -> Result<(), Failure> {
    if let Some(folder) = &options.lake {
        return print_findings(
            &lake::over_pairs(folder, options.campaign.campaign.as_deref())?,
            options.json,
        );
    }
    let mut store = Store::open_to_read(&options.campaign.store.place()?)?;
    let row = campaign(&mut store, options.campaign.campaign.as_deref())?;
    let (Some(number), Some(path)) = (options.pair, &options.out) else {
        return print_verdicts(&mut store, &row, options.json);
    };
    let pairs = store.progress(&row.id)?;
    let pair = pairs.iter().find(|pair| pair.pair == number).ok_or_else(|| {
        Failure::usage(format!("{} has the pairs 0 to {}", row.id, pairs.len().saturating_sub(1)))
    })?;
    results::write_record(&mut store, &row, pair, path)?;
    say!("The record of {}: {} (stacklab report {})", pair.name(), path.display(), quote_file(path));
    Ok(())
}

/// Prints the verdicts of each pair, and over all pairs. Of a campaign with one pair, its report: nothing holds over
/// pairs then.
pub(crate) fn print_verdicts(store: &mut Store, row: &CampaignRow, json: bool) -> Result<(), Failure> {
    let pairs = store.progress(&row.id)?;
    if let ([pair], false) = (&pairs[..], json)
        && pair.blocks.done > 0
    {
        let findings = conclude(&results::pair_record(store, row, pair)?)?;
        let name = printable_lines(&pair.name());
        print_text(&format!("{name}\n\n{}", render(&findings, OutputFormat::Text, width())))?;
        return if findings.valid_runs == 0 { Err(Failure::nothing_valid()) } else { Ok(()) };
    }
    let found = results::over_pairs(store, row)?;
    if found.pairs.is_empty() {
        return Err(no_result(row));
    }
    print_findings(&found, json)
}

fn print_findings(found: &FleetFindings, json: bool) -> Result<(), Failure> {
    print_text(&if json { fleet_json(found) } else { fleet_text(found, width()) })?;
    if found.pairs.iter().all(|pair| pair.valid_runs == 0) { Err(Failure::nothing_valid()) } else { Ok(()) }
}

fn no_result(row: &CampaignRow) -> Failure {
    Failure::new(NO_DATA, format!("{} has no result yet: see `stacklab fleet status`", row.id))
}

//! `stacklab fleet run`.

use crate::commands::fleet::{StoreOptions, WireOptions, campaign, view};
use crate::commands::study::StudyOptions;
use crate::failure::{Failure, interrupt_flag};
use clap::Args;
use stacklab_campaign::sources::{new_record, new_seed};
use stacklab_fleet::coordinator::{Coordinator, Event};
use stacklab_fleet::pairs::Pairs;
use stacklab_fleet::store::{CampaignRow, CampaignState, Class, Store};
use stacklab_fleet::{FleetError, FleetStudy, study_of};
use stacklab_model::{count, say};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a line says how far the campaign is.
const SAY_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub study: StudyOptions,
    /// Pairs to measure, sender first, by labels (name is one): 'site=a -> site=b'; or a file with such lines; may be
    /// repeated. Default: every agent with every other one
    #[arg(long, value_name = "PAIRS")]
    pub pairs: Vec<String>,
    /// Blocks of each pair
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub blocks: u32,
    /// How often a block is tried before it is given up
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    pub attempts: u32,
    /// What may run at the same time on an agent or a shared link: exclusive (only background blocks), normal (no
    /// exclusive ones) or background (anything)
    #[arg(long, value_name = "CLASS", default_value = "exclusive")]
    pub class: Class,
    /// Most blocks at the same time, on whichever agents; default: no limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub at_once: Option<u32>,
    /// Name of the campaign; default: study and time
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Continue the campaign of this --name, or the newest one, with its study, pairs and blocks
    #[arg(long, conflicts_with_all = ["study", "scale", "seed", "settings", "without", "pairs"])]
    pub resume: bool,
    #[command(flatten)]
    pub store: StoreOptions,
    #[command(flatten)]
    pub wire: WireOptions,
}

pub(crate) fn run(options: RunOptions) -> Result<(), Failure> {
    let interrupted = interrupt_flag()?;
    // All errors of the request are found before an agent is asked.
    let begun = if options.resume { None } else { Some(request(&options)?) };
    let mut store = Store::open(&options.store.place()?)?;
    let mut coordinator = Coordinator::new(&mut store, options.wire.open(None)?, interrupted)?;
    coordinator.limit(options.at_once.map_or(usize::MAX, |limit| limit as usize));
    let campaign = match begun {
        Some((study, pairs)) => {
            let agents = coordinator.agents(&mut |event| say(&event))?;
            let name = options.name.clone().unwrap_or_else(|| default_name(&study.name));
            let tries = (options.blocks, options.attempts);
            coordinator.add(&name, &study, options.class, &pairs, tries, &agents)?
        }
        None => {
            let row = campaign(coordinator.store(), options.name.as_deref())?;
            coordinator.store().set_state(&row.id, CampaignState::Running)?;
            row
        }
    };
    begin(&campaign, coordinator.store())?;
    let ended = measure(&mut coordinator, &campaign);
    drop(coordinator);
    if let Err(FleetError::Interrupted) = ended {
        let option = options.store.option();
        say!("stacklab: continue with: stacklab fleet run --resume --name {}{option}", campaign.id);
    }
    ended?;
    view::print_verdicts(&mut store, &campaign, false)
}

fn request(options: &RunOptions) -> Result<(FleetStudy, Pairs), Failure> {
    let asked = &options.study;
    let seed = asked.seed.unwrap_or_else(new_seed);
    let settings = asked.all_settings();
    let study = FleetStudy::new(asked.source()?, asked.scale.clone(), settings, seed, options.blocks)?;
    Ok((study, Pairs::parse(&options.pairs)?))
}

fn begin(campaign: &CampaignRow, store: &mut Store) -> Result<(), Failure> {
    let pairs = store.progress(&campaign.id)?;
    for pair in &pairs {
        if let Some(reason) = &pair.skipped {
            say!("stacklab: {} -> {} is left out: {reason}", pair.sender, pair.receiver);
        }
    }
    let blocks: u32 = pairs.iter().map(|pair| pair.blocks.sum()).sum();
    let (study, _) = study_of(campaign)?.check()?;
    say!(
        "{}\n{}, {}, campaign {} in {}",
        study.title,
        count(pairs.len(), "pair"),
        count(blocks as usize, "block"),
        campaign.id,
        store.place()
    );
    Ok(())
}

fn measure(coordinator: &mut Coordinator<'_>, campaign: &CampaignRow) -> Result<(), FleetError> {
    let began = Instant::now();
    let mut committed = 0_u32;
    let mut said = Instant::now();
    let mut failed = HashMap::new();
    coordinator.run(campaign, &mut |event| match event {
        Event::Committed(key) => {
            committed += 1;
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                let seconds = began.elapsed().as_secs();
                let blocks = count(committed as usize, "block");
                say!("{blocks} in {seconds} s, the last one of pair {}", key.pair);
            }
        }
        // A reason that repeats itself is said once.
        Event::Failed(key, reason)
            if failed.insert(key.pair, reason.to_owned()).as_deref() == Some(reason) => {}
        event => say(&event),
    })
}

fn say(event: &Event<'_>) {
    match event {
        Event::Unusable(agent, reason) => say!("stacklab: agent {agent} is not used: {reason}"),
        Event::Failed(key, reason) => say!("stacklab: {key}: {reason}"),
        Event::Retried(error) => say!("stacklab: {error}; trying again"),
        Event::Committed(_) => {}
    }
}

fn default_name(study: &str) -> String {
    let record = new_record(study);
    let name = record.file_stem().unwrap_or_else(|| Path::new("fleet").as_os_str()).to_string_lossy();
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

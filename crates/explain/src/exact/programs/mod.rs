//! Exact counts of a study's own programs: the instructions that a request takes in user space, by function.
//!
//! Each program runs in the study's testbed as in a campaign, but under QEMU's emulator for programs (user mode), whose
//! plugin counts (`sys/user_plugin.rs`). The kernel is this machine's, and its instructions are not counted. A run with
//! some requests and one with twice as many differ by the requests between: what start and end take is in both.

mod blocks;
pub(crate) mod campaign;
mod folders;
mod symbols;

use crate::ExplainError;
use crate::exact::programs::blocks::{Executed, read_folder};
use crate::exact::programs::folders::{RunFolders, set_mode};
use crate::exact::programs::symbols::SymbolFiles;
use crate::exact::{check_plugins, interface, to_exact_error};
use stacklab_campaign::Emulators;
use stacklab_campaign::rig::{Rigs, RoutedPlacement};
use stacklab_model::{Cell, EndCounts, FunctionCount, ProgramCell, ProgramCounts};
use stacklab_study::Study;
use stacklab_testbed::program_in_path;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The emulator of programs.
pub const USER_EMULATOR: &str = "qemu-x86_64";
/// How to get it.
pub const GET_USER_EMULATOR: &str = "sudo apt-get install --no-install-recommends qemu-user (QEMU 7 to 11.0)";
/// The processor that it offers: all that it can emulate.
const CPU: &str = "max";
/// Requests of the shorter runs, unless others are asked for.
pub const DEFAULT_REQUESTS: u64 = 100;
/// How often each run is repeated, so that the spread is known.
const ROUNDS: usize = 3;
/// How many times longer programs may take than without the emulator.
const SLOWNESS: u32 = 30;
/// How names of variables begin that the emulator or its loader reads.
const OF_EMULATOR: [&[u8]; 2] = [b"LD_", b"QEMU_"];
/// Fewest instructions of a request: a client that makes requests takes more.
const MIN_PER_REQUEST: u64 = 20;
/// The oldest version of QEMU that counts programs, and the first whose interface is another one.
const OLDEST: [u32; 2] = [7, 0];
const NEXT_INTERFACE: u32 = 7;

/// The plugin, empty in builds for targets that it does not support.
const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/user_plugin.so"));

/// The version of this QEMU, if it can count the instructions of programs.
pub fn check_user_emulator(qemu: &Path) -> Result<String, String> {
    check_plugins(qemu, PLUGIN, is_known)
}

/// Whether the plugin knows the interface of a version.
fn is_known(version: &str) -> Result<(), String> {
    let is_old = super::numbers(version).is_none_or(|numbers| numbers < OLDEST);
    let is_known = interface(version).is_ok_and(|interface| interface < NEXT_INTERFACE);
    if is_old || !is_known {
        return Err(format!("QEMU {version} cannot count programs: QEMU 7 to 11.0 can"));
    }
    Ok(())
}

/// Whether all programs of a study can be counted. The error says what to change.
pub fn check_programs(study: &Study, name: &str) -> Result<(), ExplainError> {
    if study.programs.is_empty() {
        return Err(ExplainError::Study(format!(
            "{name} has no [[program]] tables: --exact counts udp, tcp, echo, connect, or the programs of a study"
        )));
    }
    for cell in &study.cells {
        if let Some(program) = study.program_of(cell)
            && !program.takes_requests()
        {
            return Err(ExplainError::Study(format!(
                "the client of `{}` does not take a number of requests, so what one takes is not known: write {{requests}} \
                 into its command where the number stands",
                program.name
            )));
        }
    }
    Ok(())
}

/// Counts the instructions of a study's programs, with a number of requests and twice as many. `step` is called with
/// what is counted next. Call it from the main thread.
pub fn count_programs(
    study: &Study,
    routed: Option<RoutedPlacement>,
    requests: u64,
    step: &mut dyn FnMut(&str),
    interrupted: &'static AtomicBool,
) -> Result<ProgramCounts, ExplainError> {
    let emulator = UserEmulator::find()?;
    let mut rigs = Rigs::build(study, 0, Vec::new(), routed, interrupted)?;
    let requests = [requests, 2 * requests];
    let mut symbols = SymbolFiles::default();
    let mut cells = Vec::new();
    for cell in &study.cells {
        cells.push(emulator.count(&mut rigs, study, cell, requests, &mut symbols, step)?);
    }
    let pairs = compared_pairs(study);
    Ok(ProgramCounts { qemu: emulator.version, cpu: CPU.to_owned(), requests, cells, pairs })
}

/// The places of the cells that the study compares, each pair once.
fn compared_pairs(study: &Study) -> Vec<[usize; 2]> {
    let mut pairs = Vec::new();
    for question in study.questions() {
        let places = question.cells().map(|cell| study.cells.iter().position(|other| other == cell));
        if let [Some(baseline), Some(candidate)] = places
            && !pairs.contains(&[baseline, candidate])
        {
            pairs.push([baseline, candidate]);
        }
    }
    pairs
}

struct UserEmulator {
    qemu: PathBuf,
    version: String,
    /// Has the plugin, and the folders of the run.
    folder: tempfile::TempDir,
}

impl UserEmulator {
    fn find() -> Result<Self, ExplainError> {
        let qemu = program_in_path(USER_EMULATOR).ok_or_else(|| {
            ExplainError::Exact(format!(
                "there is no program `{USER_EMULATOR}`, which programs are counted with: {GET_USER_EMULATOR}"
            ))
        })?;
        let version = check_user_emulator(&qemu).map_err(ExplainError::Exact)?;
        let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
        if folder.path().to_string_lossy().contains(',') {
            let reason = "QEMU takes the path of a plugin without commas: set TMPDIR to another folder";
            return Err(ExplainError::Exact(reason.to_owned()));
        }
        let plugin = folder.path().join("plugin.so");
        fs::write(&plugin, PLUGIN).map_err(ExplainError::Folder)?;
        // Programs may run as other users than this one.
        set_mode(folder.path(), 0o711)?;
        set_mode(&plugin, 0o644)?;
        Ok(UserEmulator { qemu, version, folder })
    }

    /// Counts the instructions of a cell's program, in rounds of a shorter and a longer run.
    fn count(
        &self,
        rigs: &mut Rigs,
        study: &Study,
        cell: &Cell,
        requests: [u64; 2],
        symbols: &mut SymbolFiles,
        step: &mut dyn FnMut(&str),
    ) -> Result<ProgramCell, ExplainError> {
        let mut counted = CountedCell::default();
        for round in 1..=ROUNDS {
            step(&format!("counting {}, round {round} of {ROUNDS}", cell.label()));
            let mut runs = Vec::new();
            for requests in requests {
                let run = self.run(rigs, study, cell, requests)?;
                run.iter().for_each(|executed| symbols.read_all(executed));
                runs.push(run);
            }
            counted.add_round(&runs, symbols);
        }
        counted.finish(cell, requests[0])
    }

    /// Runs the program of a cell, and gives what its client and its server executed.
    fn run(
        &self,
        rigs: &mut Rigs,
        study: &Study,
        cell: &Cell,
        requests: u64,
    ) -> Result<[Executed; 2], ExplainError> {
        let folders = RunFolders::create(self.folder.path())?;
        let [client, server] = folders.ends.each_ref().map(|folder| self.command(folder));
        let emulators = Emulators { client, server, slowness: SLOWNESS };
        let ran = rigs.emulate(study, cell, requests, &emulators)?;
        if let Err(reason) = ran {
            let reason = format!(
                "{reason}\nIt ran under {USER_EMULATOR} with {requests} requests; `stacklab run` shows whether it runs without"
            );
            return Err(name_cell(cell, &reason));
        }
        let mut executed = Vec::new();
        for folder in &folders.ends {
            executed.push(read_folder(folder).map_err(|reason| name_cell(cell, &reason))?);
        }
        executed.try_into().map_err(|_| to_exact_error("count", &"an end is missing"))
    }

    /// Its command up to the program, for counts in a folder.
    fn command(&self, folder: &Path) -> Vec<OsString> {
        let plugin = self.folder.path().join("plugin.so");
        let interface = interface(&self.version).unwrap_or(1);
        let plugin = format!("{},out={},version={interface}", plugin.display(), folder.display());
        let variables = list_emulator_variables(std::env::vars_os());
        let mut command = Vec::new();
        if !variables.is_empty() {
            command.push(OsString::from("env"));
        }
        for (name, _) in &variables {
            command.extend(["-u".into(), name.clone()]);
        }
        command.push(OsString::from(&self.qemu));
        // The plugin repeats these for programs that are started, and takes `-plugin` for the last of them.
        command.extend(["-cpu", CPU, "-seed", "1"].map(OsString::from));
        for (mut variable, value) in variables {
            variable.push("=");
            variable.push(value);
            command.extend(["-E".into(), variable]);
        }
        command.extend(["-plugin", &plugin].map(OsString::from));
        command
    }
}

/// The variables of programs that the emulator or its loader would take for theirs. They are set in the program alone.
fn list_emulator_variables(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    all.filter(|(name, _)| OF_EMULATOR.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix)))
        .collect()
}

fn name_cell(cell: &Cell, reason: &str) -> ExplainError {
    ExplainError::Program(format!("{}: {reason}", cell.label()))
}

/// What is known of a cell so far, its client first.
#[derive(Default)]
struct CountedCell {
    rounds: [Vec<[u64; 2]>; 2],
    functions: [Functions; 2],
}

impl CountedCell {
    /// Adds a shorter and a longer run.
    fn add_round(&mut self, runs: &[[Executed; 2]], symbols: &SymbolFiles) {
        for end in [0, 1] {
            self.rounds[end].push([runs[0][end].total(), runs[1][end].total()]);
            self.functions[end].add(&runs[0][end], -1, symbols);
            self.functions[end].add(&runs[1][end], 1, symbols);
        }
    }

    fn finish(self, cell: &Cell, requests: u64) -> Result<ProgramCell, ExplainError> {
        let [client, server] = self.rounds;
        check_increase(&client, requests).map_err(|reason| name_cell(cell, &reason))?;
        let [of_client, of_server] = self.functions.map(Functions::finish);
        Ok(ProgramCell {
            program: cell.settings.program.clone().unwrap_or_default(),
            family: cell.family,
            label: cell.label(),
            client: EndCounts { rounds: client, functions: of_client },
            server: EndCounts { rounds: server, functions: of_server },
        })
    }
}

/// Whether a client makes as many requests as it is asked to: by the mean of the rounds, which must be above their
/// spread. The starts of two runs may differ by more than few requests take.
fn check_increase(rounds: &[[u64; 2]], requests: u64) -> Result<(), String> {
    let mut increases = Vec::new();
    for [shorter, longer] in rounds {
        increases.push(*longer as i64 - *shorter as i64);
    }
    let mean = increases.iter().sum::<i64>() / increases.len().max(1) as i64;
    let least = increases.iter().min().copied().unwrap_or_default();
    let range = increases.iter().max().map_or(0, |most| most - least);
    let expected = MIN_PER_REQUEST.saturating_mul(requests) as i64;
    if mean >= expected && mean > range / 2 {
        return Ok(());
    }
    if range / 2 >= expected || mean >= expected {
        return Err(format!(
            "the client's start varies by {range} instructions, more than its requests take: give more --requests \
             than {requests}"
        ));
    }
    Err("the client takes as many instructions for twice the requests: does it make as many as {requests} says?"
        .to_owned())
}

/// Instructions by file and function.
#[derive(Debug, Default)]
struct Functions {
    counts: BTreeMap<(String, Option<String>), i64>,
    /// The offsets in each file that have no symbol.
    unnamed: BTreeMap<String, [u64; 2]>,
}

impl Functions {
    fn add(&mut self, executed: &Executed, sign: i64, symbols: &SymbolFiles) {
        for (file, blocks) in &executed.files {
            let path = &file.path;
            for (offset, instructions) in blocks {
                let name = symbols.name_at(file, *offset).map(str::to_owned);
                if name.is_none() {
                    let range = self.unnamed.entry(path.clone()).or_insert([*offset, *offset]);
                    *range = [range[0].min(*offset), range[1].max(*offset)];
                }
                *self.counts.entry((path.clone(), name)).or_default() += sign * *instructions as i64;
            }
        }
    }

    /// Those that requests take, most first.
    fn finish(self) -> Vec<FunctionCount> {
        let mut functions = Vec::new();
        for ((file, name), instructions) in self.counts {
            if instructions == 0 {
                continue;
            }
            let mut offsets = None;
            let name = match name {
                Some(name) => name,
                None if file.is_empty() => "code made in memory".to_owned(),
                None => {
                    offsets = self.unnamed.get(&file).copied();
                    "no symbol".to_owned()
                }
            };
            functions.push(FunctionCount { name, file, offsets, instructions });
        }
        functions.sort_by(|a, b| b.instructions.cmp(&a.instructions).then_with(|| a.name.cmp(&b.name)));
        functions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::programs::blocks::CodeFile;

    #[test]
    fn versions_whose_interface_is_known_count() {
        for version in ["7.0.0", "7.2.22", "10.0.13", "11.0.50"] {
            assert_eq!(is_known(version), Ok(()), "{version}");
        }
        for version in ["6.2.0", "11.1.0", "12.0.0"] {
            assert!(is_known(version).is_err(), "{version}");
        }
    }

    #[test]
    fn one_noisy_round_does_not_refuse() {
        for (rounds, requests, why) in [
            (vec![[1000, 9000], [1000, 9000]], 100, None),
            (vec![[1000, 9000], [5000, 4900], [1000, 9000]], 100, None),
            (vec![[1000, 1000], [1000, 1040]], 100, Some("twice the requests")),
            (vec![[1000, 2999]], 100, Some("twice the requests")),
            (vec![[1000, 900], [1000, 61_000]], 100, Some("varies by 60100 instructions")),
            (vec![[90_000, 1000], [1000, 90_000]], 100, Some("give more --requests")),
        ] {
            let found = check_increase(&rounds, requests);
            let is_expected = match (&found, why) {
                (Err(reason), Some(why)) => reason.contains(why),
                (found, why) => found.is_ok() && why.is_none(),
            };
            assert!(is_expected, "{rounds:?}: {found:?}");
        }
    }

    #[test]
    fn variables_of_the_emulator_are_listed() {
        let all = ["LD_PRELOAD", "QEMU_CPU", "PATH", "OLD_LD"].map(|name| (name.into(), "x".into()));
        let names: Vec<OsString> =
            list_emulator_variables(all.into_iter()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["LD_PRELOAD", "QEMU_CPU"]);
    }

    fn with_blocks(blocks: &[(&str, u64, u64)]) -> Executed {
        let mut executed = Executed::default();
        for (file, offset, instructions) in blocks {
            let file = CodeFile { path: (*file).to_owned(), ..CodeFile::default() };
            executed.files.entry(file).or_default().insert(*offset, *instructions);
        }
        executed
    }

    #[test]
    fn what_start_takes_falls_out() {
        let mut functions = Functions::default();
        let symbols = SymbolFiles::default();
        functions.add(&with_blocks(&[("/none", 0x10, 100), ("/start", 0, 5), ("", 7, 1)]), -1, &symbols);
        functions.add(&with_blocks(&[("/none", 0x20, 170), ("/start", 0, 5), ("", 9, 4)]), 1, &symbols);
        let found = functions.finish();
        assert_eq!([found[0].offsets, found[1].offsets], [Some([0x10, 0x20]), None]);
        let found: Vec<(&str, &str, i64)> =
            found.iter().map(|row| (row.file.as_str(), row.name.as_str(), row.instructions)).collect();
        assert_eq!(found, [("/none", "no symbol", 70), ("", "code made in memory", 3)]);
    }
}

//! Gives each target its corpus: what was found once stays mended.

use stacklab_fuzz::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest for one input, on a machine that does other work: against loops without end. `make fuzz` allows one second.
const LIMIT: Duration = Duration::from_secs(20);

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn names(of: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(of).unwrap_or_else(|error| panic!("{}: {error}", of.display()));
    files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_input_of_every_corpus_holds() {
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        let corpus = folder("corpus").join(name);
        let mut inputs: Vec<PathBuf> =
            fs::read_dir(&corpus).into_iter().flatten().map(|file| file.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{} is empty", corpus.display());
        for input in inputs {
            let bytes = fs::read(&input).unwrap();
            let began = Instant::now();
            let held = std::panic::catch_unwind(|| target(&bytes));
            let lasted = began.elapsed();
            if held.is_err() || lasted > LIMIT {
                broken.push(format!("{} ({lasted:?})", input.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these break what their targets promise:\n{}", broken.join("\n"));
}

#[test]
fn every_target_has_a_corpus_and_a_fuzzer() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len());
    assert_eq!(names(&folder("corpus")), targets);
    assert_eq!(names(&folder("targets")), targets);
}

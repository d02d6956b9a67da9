//! Tests that are in the files more than once: printed twice, in two files, or of both ends.

use crate::test::{Content, Format, ToolFile, ToolTest};
use stacklab_model::{RunRecord, count};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A test's file and its number there.
type TestPlace = (usize, usize);

/// Leaves out each test that an earlier one of the files is too. The one with more figures is kept, and what makes one
/// of both invalid counts. `names` are those of the files.
pub fn leave_out_repeats(files: &mut [ToolFile], names: &[String]) {
    let mut kept = KeptTests::new();
    let mut repeats: BTreeSet<TestPlace> = BTreeSet::new();
    for place in places(files) {
        let Some((known, what)) = find_same(files, &kept, &repeats, place) else {
            keep_names(&mut kept, test(files, place), place);
            continue;
        };
        let is_fuller = figures(test(files, place)) > figures(test(files, known));
        let [keep, drop] = if is_fuller { [place, known] } else { [known, place] };
        keep_names(&mut kept, test(files, known), keep);
        keep_names(&mut kept, test(files, place), keep);
        repeats.insert(drop);
        let reasons = test(files, drop).invalid.clone();
        if let Content::Tests(tests) = &mut files[keep.0].content {
            tests[keep.1].invalid.extend(reasons);
            tests[keep.1].invalid.dedup();
        }
        files[drop.0].left_out.push(format!(
            "test {} is test {} of {} (the same {}): it counts once",
            drop.1 + 1,
            keep.1 + 1,
            names[keep.0],
            what
        ));
    }
    leave_out_repeated_runs(files);
    for (file, ToolFile { content, .. }) in files.iter_mut().enumerate() {
        if let Content::Tests(tests) = content {
            let mut number = 0;
            tests.retain(|_| {
                number += 1;
                !repeats.contains(&(file, number - 1))
            });
        }
    }
}

/// Leaves out runs of exports that an earlier row has too: the same begin, cell and figures.
fn leave_out_repeated_runs(files: &mut [ToolFile]) {
    let mut known: HashSet<u64> = HashSet::new();
    for file in files {
        let Content::Runs(runs) = &mut file.content else { continue };
        let all = runs.len();
        runs.retain(|run| run.started_unix_ns == 0 || known.insert(hash_run(run)));
        if runs.len() < all {
            let repeats = count(all - runs.len(), "run");
            file.left_out.push(format!(
                "{repeats} of the same begin, cell and figures as an earlier one: it counts once"
            ));
        }
    }
}

fn hash_run(run: &RunRecord) -> u64 {
    let mut hasher = DefaultHasher::new();
    let RunRecord { trial, started_unix_ns, values, .. } = run;
    format!("{started_unix_ns} {:?} {:?} {values:?}", trial.cell, trial.probe).hash(&mut hasher);
    hasher.finish()
}

/// The places of tests by what no other test has.
type KeptTests = HashMap<String, Vec<TestPlace>>;

/// Notes that a test, or the same one in another place, has these names.
fn keep_names(kept: &mut KeptTests, test: &ToolTest, place: TestPlace) {
    for identity in &test.identities {
        let places = kept.entry(identity.name.clone()).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }
}

/// An earlier test that is this one, and what both have.
fn find_same(
    files: &[ToolFile],
    kept: &KeptTests,
    repeats: &BTreeSet<TestPlace>,
    place: TestPlace,
) -> Option<(TestPlace, &'static str)> {
    for identity in &test(files, place).identities {
        let known = kept.get(&identity.name).map(Vec::as_slice).unwrap_or_default();
        let same = known.iter().find(|known| !repeats.contains(*known) && are_same(files, **known, place));
        if let Some(same) = same {
            return Some((*same, identity.what));
        }
    }
    None
}

/// Whether two tests are one, by the first identity that both have. Where a time is missing, ports decide: the files of
/// both ends have the same, and one host may use them for several tests, whose figures differ.
fn are_same(files: &[ToolFile], one: TestPlace, other: TestPlace) -> bool {
    let first = test(files, one);
    let second = test(files, other);
    let mut pairs =
        first.identities.iter().flat_map(|known| second.identities.iter().map(move |new| (known, new)));
    let Some((known, new)) = pairs.find(|(known, new)| known.what == new.what) else { return false };
    known.is_of(new).unwrap_or_else(|| match first.side.zip(second.side) {
        Some(sides) if sides.0 != sides.1 => true,
        Some(_) => {
            let is_text = files[one.0].format != Format::Iperf3 && files[other.0].format != Format::Iperf3;
            is_text && first.values == second.values && first.duration_ns == second.duration_ns
        }
        None => one.0 != other.0,
    })
}

fn places(files: &[ToolFile]) -> Vec<TestPlace> {
    let mut places = Vec::new();
    for (number, file) in files.iter().enumerate() {
        if let Content::Tests(tests) = &file.content {
            places.extend((0..tests.len()).map(|test| (number, test)));
        }
    }
    places
}

fn test(files: &[ToolFile], (file, number): TestPlace) -> &ToolTest {
    let Content::Tests(tests) = &files[file].content else { unreachable!("only tests have places") };
    &tests[number]
}

fn figures(test: &ToolTest) -> usize {
    test.values.values().filter(|value| value.measured().is_some()).count()
}

//! Tests that are in the files more than once: printed twice, in two files, or of both ends.

use crate::test::{Content, ToolFile, ToolTest};
use std::collections::{BTreeSet, HashMap};

/// A test's file and its number there.
type Place = (usize, usize);

/// Leaves out each test that an earlier one of the files is too. The one with more figures is kept, and what makes one
/// of both invalid counts. `names` are those of the files.
pub fn leave_out_repeats(files: &mut [ToolFile], names: &[String]) {
    let mut kept: HashMap<String, Vec<Place>> = HashMap::new();
    let mut repeats: BTreeSet<Place> = BTreeSet::new();
    for place in places(files) {
        let Some(identity) = test(files, place).identity.clone() else { continue };
        let places = kept.entry(identity.name.clone()).or_default();
        let same = places.iter().position(|known| are_same(files, *known, place));
        let Some(at) = same else {
            places.push(place);
            continue;
        };
        let known = places[at];
        let is_fuller = figures(test(files, place)) > figures(test(files, known));
        let [keep, drop] = if is_fuller { [place, known] } else { [known, place] };
        places[at] = keep;
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
            identity.what
        ));
    }
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

/// Whether two tests are one. Where a time is missing, ports decide: the files of both ends have the same, and one host
/// may use them for several tests.
fn are_same(files: &[ToolFile], one: Place, other: Place) -> bool {
    let first = test(files, one);
    let second = test(files, other);
    let Some(identities) = first.identity.as_ref().zip(second.identity.as_ref()) else { return false };
    let is_known = identities.0.is_of(identities.1);
    is_known.unwrap_or_else(|| match first.side.zip(second.side) {
        Some(sides) => sides.0 != sides.1,
        None => one.0 != other.0,
    })
}

fn places(files: &[ToolFile]) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, file) in files.iter().enumerate() {
        if let Content::Tests(tests) = &file.content {
            places.extend((0..tests.len()).map(|test| (number, test)));
        }
    }
    places
}

fn test(files: &[ToolFile], (file, number): Place) -> &ToolTest {
    let Content::Tests(tests) = &files[file].content else { unreachable!("only tests have places") };
    &tests[number]
}

fn figures(test: &ToolTest) -> usize {
    test.values.values().filter(|value| value.measured().is_some()).count()
}

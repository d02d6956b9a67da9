//! Closed sets of names, and the nearest valid name when one is misspelt.

use crate::renamed::renamed;
use std::fmt;

/// A name that is not in its set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The invalid text.
    pub found: String,
    /// The name of the set, for example `family`.
    pub set: &'static str,
    /// Every valid name.
    pub valid: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(new) = self.renamed_to() {
            return write!(f, "{} `{}` was renamed to `{new}`", self.set, self.found);
        }
        write!(f, "there is no {} `{}`: expected one of {}", self.set, self.found, self.valid.join(", "))?;
        match nearest(&self.found, self.valid.iter().copied()) {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownName {}

impl UnknownName {
    /// The present name, if the text is an old one.
    pub fn renamed_to(&self) -> Option<&'static str> {
        renamed(self.set, &self.found)
    }
}

/// The valid name closest to the text, if it is close enough to be the intended name (at most a third of its letters
/// are wrong, or one).
pub fn nearest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    let length = found.chars().count();
    valid
        .into_iter()
        .filter(|name| has_near_length(length, name))
        .map(|name| (distance(&found, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The names from the nearest to the farthest. Of an untrusted text only the beginning counts.
pub fn by_distance<'a>(found: &str, valid: &[&'a str]) -> Vec<&'a str> {
    const BEGINNING: usize = 40;
    let found: String = found.to_lowercase().chars().take(BEGINNING).collect();
    let mut names = valid.to_vec();
    names.sort_by_key(|name| distance(&found, &name.to_lowercase()));
    names
}

/// Whether a text of this many characters may be near to a name. An untrusted text may have a megabyte.
fn has_near_length(length: usize, name: &str) -> bool {
    length.abs_diff(name.chars().count()) <= (name.len() / 3).max(1)
}

/// Edit distance (Damerau-Levenshtein): letters inserted, deleted, replaced, or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut edits = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            edits[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = edits[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let swap = if swapped { edits[i - 2][j - 2] + 1 } else { usize::MAX };
                replaced.min(edits[i - 1][j] + 1).min(edits[i][j - 1] + 1).min(swap)
            };
        }
    }
    edits[a.len()][b.len()]
}

/// An enum whose variants each have one name, used alike in study files, records, messages and reports.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident ($set:literal) { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $type { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl $type {
            /// Every member, in the order of its definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// Every name, in the same order as [`Self::ALL`].
            pub const NAMES: &'static [&'static str] = &[$($name,)+];
            /// The name used in study files, records and reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        $crate::names::text_of_names!($type, $set);
    };
}
pub(crate) use named;

/// Reading and writing for a closed set with `ALL`, `NAMES` and `name`.
macro_rules! text_of_names {
    ($type:ident, $set:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|member| member.name() == text).ok_or_else(|| {
                    $crate::UnknownName { found: text.to_owned(), set: $set, valid: Self::NAMES }
                })
            }
        }
    };
}
pub(crate) use text_of_names;

/// Each item once, at its first occurrence.
pub fn once_each<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut each = Vec::new();
    for item in items {
        if !each.contains(&item) {
            each.push(item);
        }
    }
    each
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        assert_eq!(nearest("ipv5", ["ipv4", "ipv6"]), Some("ipv4"));
        assert_eq!(nearest("familly", ["family", "transport"]), Some("family"));
        assert_eq!(nearest("mut", ["rate", "mtu", "offloads"]), Some("mtu"));
        assert_eq!(nearest("banana", ["family", "transport"]), None);
        // Not compared letter by letter, which would take seconds and gigabytes.
        assert!(!has_near_length(20 << 20, "transport") && has_near_length(12, "transport"));
        assert_eq!(nearest(&"a".repeat(20 << 20), ["family", "transport"]), None);
    }
}

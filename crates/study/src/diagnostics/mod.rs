//! Errors in a study file, each with its source location.

mod render;

use std::fmt;
use std::ops::Range;

/// A source text of a study: its file, a `--set`, a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
}

/// A source location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Index into the sources.
    pub source: usize,
    /// Byte range in the source's text.
    pub span: Range<usize>,
}

impl Location {
    /// A whole source, shown by its first line.
    pub(crate) fn whole(source: usize) -> Self {
        Location { source, span: 0..0 }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub place: Location,
    /// The problem, in one sentence.
    pub title: String,
    /// What was expected, shown at the location; may be empty.
    pub label: String,
    /// A related location, and its relation.
    pub related: Option<(Location, String)>,
    /// What to do next.
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn at(place: Location, title: impl Into<String>, label: impl Into<String>) -> Self {
        Problem { place, title: title.into(), label: label.into(), related: None, help: None }
    }

    pub(crate) fn related(mut self, place: Location, label: impl Into<String>) -> Self {
        self.related = Some((place, label.into()));
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Offers the nearest valid name, if one is near.
    pub(crate) fn nearest<'a>(mut self, found: &str, valid: impl IntoIterator<Item = &'a str>) -> Self {
        if let Some(name) = stacklab_model::nearest(found, valid) {
            self.help = Some(format!("did you mean `{name}`?"));
        }
        self
    }
}

/// Maximum number of problems that are kept, and of those that are shown: a hostile file has as many as it likes.
const MOST_KEPT: usize = 200;
const MOST_SHOWN: usize = 20;

/// The sources of a study and the problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    sources: Vec<Source>,
    list: Vec<Problem>,
    /// Number of problems that were not kept.
    more: usize,
}

impl Problems {
    /// Adds a source and returns its index.
    pub(crate) fn source(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.sources.push(Source { name: name.into(), text: text.into() });
        self.sources.len() - 1
    }

    /// Adds a problem, unless it is already known.
    pub(crate) fn add(&mut self, problem: Problem) {
        // Places are compared soon, and seldom the same.
        if self.list.iter().any(|known| known.place == problem.place && *known == problem) {
            return;
        }
        if self.list.len() < MOST_KEPT { self.list.push(problem) } else { self.more += 1 }
    }

    /// Whether a location already has a problem; no further one is then reported there.
    pub(crate) fn known_at(&self, place: &Location) -> bool {
        self.list.iter().any(|problem| problem.place == *place)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems in the order of their locations.
    pub(crate) fn into_errors(mut self) -> StudyErrors {
        self.list.sort_by_key(|problem| (problem.place.source, problem.place.span.start));
        StudyErrors { sources: self.sources, list: self.list, more: self.more }
    }
}

/// All problems of a study, found in one pass. The text shows each problem at its place: file, line, column, the line
/// itself with a caret, what was expected and the nearest valid name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyErrors {
    sources: Vec<Source>,
    list: Vec<Problem>,
    more: usize,
}

impl StudyErrors {
    /// The number of problems, at least one.
    pub fn count(&self) -> usize {
        self.list.len() + self.more
    }
}

impl fmt::Display for StudyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().take(MOST_SHOWN).enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            let text = render::plain(problem, &self.sources);
            // It goes to terminals, which some characters of a stranger's file would change.
            write!(f, "{gap}{}", stacklab_model::printable_lines(&text))?;
        }
        match self.count().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more problems"),
        }
    }
}

impl std::error::Error for StudyErrors {}

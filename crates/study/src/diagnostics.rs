//! Errors in a study file, each with its source location. Only this module knows annotate-snippets.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// A source text of a study: its file, a `--set`, a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub source: usize,
    pub span: Range<usize>,
}

impl Location {
    /// A whole source, shown by its first line.
    pub(crate) fn whole(source: usize) -> Self {
        Location { source, span: 0..0 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub place: Location,
    pub title: String,
    /// What was expected, shown at the location; may be empty.
    pub label: String,
    /// Another location, and its relation to the problem.
    pub related: Option<(Location, String)>,
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn at(place: &Location, title: impl Into<String>, label: impl Into<String>) -> Self {
        Problem { place: place.clone(), title: title.into(), label: label.into(), related: None, help: None }
    }

    pub(crate) fn with_related_place(mut self, place: &Location, label: impl Into<String>) -> Self {
        self.related = Some((place.clone(), label.into()));
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn nearest<'a>(mut self, found: &str, valid: impl IntoIterator<Item = &'a str>) -> Self {
        if let Some(name) = stacklab_model::nearest(found, valid) {
            self.help = Some(format!("did you mean `{name}`?"));
        }
        self
    }
}

/// Maximum number of problems that are kept, and of those that are shown: a hostile file has as many as it likes.
const MAX_KEPT: usize = 200;
const MAX_SHOWN: usize = 20;

/// The sources of a study and the problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    sources: Vec<Source>,
    list: Vec<Problem>,
    more: usize,
}

impl Problems {
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
        if self.list.len() < MAX_KEPT { self.list.push(problem) } else { self.more += 1 }
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

    /// What is wrong, without the places in a file: of a study that nobody wrote.
    pub fn describe(&self) -> String {
        let mut texts: Vec<String> = Vec::new();
        for Problem { title, label, .. } in &self.list {
            let text = if label.is_empty() { title.clone() } else { format!("{title}: {label}") };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        stacklab_model::printable_lines(&texts.join("; "))
    }
}

impl fmt::Display for StudyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().take(MAX_SHOWN).enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            let text = plain(problem, &self.sources);
            // It goes to terminals, which some characters of a stranger's file would change.
            write!(f, "{gap}{}", stacklab_model::printable_lines(&text))?;
        }
        match self.count().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more problems"),
        }
    }
}

impl std::error::Error for StudyErrors {}

/// The longest line that is shown, bytes: the renderer goes over all of it for each problem. Of a longer one only the
/// location is said.
const MAX_LINE_LENGTH: usize = 4096;

/// A problem as plain text: title, location, the lines concerned with carets, help. No newline at the end.
fn plain(problem: &Problem, sources: &[Source]) -> String {
    let mut group = Group::with_title(Level::ERROR.primary_title(&problem.title));
    let related = problem.related.as_ref().map(|(place, label)| (place, label));
    let located: Vec<_> = [(&problem.place, &problem.label)].into_iter().chain(related).collect();
    if located.iter().any(|(place, _)| lines(place, sources).any(|line| line.len() > MAX_LINE_LENGTH)) {
        for (place, label) in located {
            group = group.element(origin(place, sources));
            if !label.is_empty() {
                group = group.element(Level::NOTE.message(label));
            }
        }
    } else {
        group = with_lines(group, problem, sources);
    }
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(help));
    }
    Renderer::plain().term_width(110).render(&[group])
}

fn with_lines<'a>(group: Group<'a>, problem: &'a Problem, sources: &'a [Source]) -> Group<'a> {
    let primary = annotation(AnnotationKind::Primary, &problem.place, &problem.label, sources);
    let snippet = |source: usize| Snippet::source(&sources[source].text).path(&sources[source].name);
    let own = snippet(problem.place.source).annotation(primary);
    let Some((place, label)) = &problem.related else { return group.element(own) };
    let context = annotation(AnnotationKind::Context, place, label, sources);
    match place.source == problem.place.source {
        true => group.element(own.annotation(context)),
        false => group.element(own).element(snippet(place.source).annotation(context)),
    }
}

fn lines<'a>(place: &Location, sources: &'a [Source]) -> impl Iterator<Item = &'a str> {
    let text = &sources[place.source].text;
    let (start, end) = span(place, text);
    let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[end..].find('\n').map_or(text.len(), |length| end + length);
    text[begin..end].lines()
}

/// A location without its lines: file, line and column.
fn origin<'a>(place: &Location, sources: &'a [Source]) -> Origin<'a> {
    let Source { name, text, .. } = &sources[place.source];
    let before = &text[..span(place, text).0];
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let line = 1 + before.matches('\n').count();
    Origin::path(name).line(line).char_column(1 + before[begin..].chars().count())
}

fn annotation<'a>(
    kind: AnnotationKind,
    place: &Location,
    label: &'a str,
    sources: &[Source],
) -> Annotation<'a> {
    let (start, end) = span(place, &sources[place.source].text);
    let annotation = kind.span(start..end);
    if label.is_empty() { annotation } else { annotation.label(label) }
}

/// Start and end of a location in its text. Locations come from a parser; one outside its text is moved to its end.
fn span(place: &Location, text: &str) -> (usize, usize) {
    let floor = |index: usize| text.floor_char_boundary(index.min(text.len()));
    let end = floor(place.span.end);
    (floor(place.span.start).min(end), end)
}

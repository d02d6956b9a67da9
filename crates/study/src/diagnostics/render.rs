//! Problems as text. The only module that knows annotate-snippets.

use crate::diagnostics::{Location, Problem, Source};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// The longest line that is shown, bytes: the renderer goes over all of it for each problem. Of a longer one only the
/// location is said.
const LONGEST_LINE: usize = 4096;

/// A problem as plain text: title, location, the lines concerned with carets, help. No newline at the end.
pub(crate) fn plain(problem: &Problem, sources: &[Source]) -> String {
    let mut group = Group::with_title(Level::ERROR.primary_title(&problem.title));
    let related = problem.related.as_ref().map(|(place, label)| (place, label));
    let located: Vec<_> = [(&problem.place, &problem.label)].into_iter().chain(related).collect();
    if located.iter().any(|(place, _)| lines(place, sources).any(|line| line.len() > LONGEST_LINE)) {
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

/// With the lines concerned.
fn with_lines<'a>(group: Group<'a>, problem: &'a Problem, sources: &'a [Source]) -> Group<'a> {
    let primary = annotation(AnnotationKind::Primary, &problem.place, &problem.label, sources);
    match &problem.related {
        Some((place, label)) if place.source == problem.place.source => {
            let context = annotation(AnnotationKind::Context, place, label, sources);
            group.element(snippet(place.source, sources).annotation(primary).annotation(context))
        }
        Some((place, label)) => {
            let context = annotation(AnnotationKind::Context, place, label, sources);
            group
                .element(snippet(problem.place.source, sources).annotation(primary))
                .element(snippet(place.source, sources).annotation(context))
        }
        None => group.element(snippet(problem.place.source, sources).annotation(primary)),
    }
}

/// The lines that a location is in.
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

fn snippet(source: usize, sources: &[Source]) -> Snippet<'_, Annotation<'_>> {
    let source = &sources[source];
    Snippet::source(&source.text).path(&source.name)
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
    let end = floor_char(text, place.span.end);
    (floor_char(text, place.span.start).min(end), end)
}

fn floor_char(text: &str, index: usize) -> usize {
    text.floor_char_boundary(index.min(text.len()))
}

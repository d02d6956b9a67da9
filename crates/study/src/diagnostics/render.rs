//! Problems as text. The only module that knows annotate-snippets.

use crate::diagnostics::{Location, Problem, Source};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

/// A problem as plain text: title, location, the lines concerned with carets, help. No newline at the end.
pub(crate) fn plain(problem: &Problem, sources: &[Source]) -> String {
    let mut group = Group::with_title(Level::ERROR.primary_title(&problem.title));
    let primary = annotation(AnnotationKind::Primary, &problem.place, &problem.label, sources);
    match &problem.related {
        Some((place, label)) if place.source == problem.place.source => {
            let context = annotation(AnnotationKind::Context, place, label, sources);
            group = group.element(snippet(place.source, sources).annotation(primary).annotation(context));
        }
        Some((place, label)) => {
            let context = annotation(AnnotationKind::Context, place, label, sources);
            group = group
                .element(snippet(problem.place.source, sources).annotation(primary))
                .element(snippet(place.source, sources).annotation(context));
        }
        None => group = group.element(snippet(problem.place.source, sources).annotation(primary)),
    }
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(help));
    }
    Renderer::plain().term_width(110).render(&[group])
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
    // Locations come from a parser; one outside its text is moved to its end.
    let text = &sources[place.source].text;
    let end = floor_char(text, place.span.end);
    let start = floor_char(text, place.span.start).min(end);
    let annotation = kind.span(start..end);
    if label.is_empty() { annotation } else { annotation.label(label) }
}

fn floor_char(text: &str, index: usize) -> usize {
    text.floor_char_boundary(index.min(text.len()))
}

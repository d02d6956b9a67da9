//! The language's sentences about mechanisms and generators, made from their definitions at compile time.

use stacklab_model::{Generator, Mechanism};

/// The description of factor mechanism, with a sentence for each level.
pub(crate) const MECHANISM: &str = text_of(&MECHANISM_TEXT);
const MECHANISM_TEXT: [u8; mechanisms::<0>().1] = mechanisms().0;

/// The description of factor generator, with a sentence for each level.
pub(crate) const GENERATOR: &str = text_of(&GENERATOR_TEXT);
const GENERATOR_TEXT: [u8; generators::<0>().1] = generators().0;

const fn text_of(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("the sentences are text"),
    }
}

/// Writes the whole text as far as there is room, and returns its length.
const fn mechanisms<const ROOM: usize>() -> ([u8; ROOM], usize) {
    let mut text = ([0; ROOM], 0);
    text = put(text, "How packets cross the link between two routers (testbed.topology \"routed\"). ");
    let mut place = 0;
    while place < Mechanism::ALL.len() {
        let mechanism = Mechanism::ALL[place].definition();
        text = sentence(text, mechanism.name, mechanism.doc);
        place += 1;
    }
    put(text, "A mechanism is measured with the families that it carries.")
}

/// As [`mechanisms`].
const fn generators<const ROOM: usize>() -> ([u8; ROOM], usize) {
    let mut text = ([0; ROOM], 0);
    text = put(text, "The program that drives the traffic, by its own command line in both hosts. ");
    let mut place = 0;
    while place < Generator::ALL.len() {
        let generator = Generator::ALL[place].definition();
        text = sentence(text, generator.name, generator.doc);
        place += 1;
    }
    put(
        text,
        "All but stacklab: between namespaces only, streams forward, without warm-up; TCP with size_of = write. Their trials have no slices, so all arms of the study are separate.",
    )
}

/// `NAME: DOC. `
const fn sentence<const ROOM: usize>(
    text: ([u8; ROOM], usize),
    name: &str,
    doc: &str,
) -> ([u8; ROOM], usize) {
    put(put(put(put(text, name), ": "), doc), ". ")
}

const fn put<const ROOM: usize>(
    (mut text, mut length): ([u8; ROOM], usize),
    more: &str,
) -> ([u8; ROOM], usize) {
    let mut place = 0;
    while place < more.len() {
        if length < ROOM {
            text[length] = more.as_bytes()[place];
        }
        length += 1;
        place += 1;
    }
    (text, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_and_generator_has_a_sentence() {
        for mechanism in Mechanism::ALL {
            let sentence = format!(" {mechanism}: {}. ", mechanism.definition().doc);
            assert!(MECHANISM.contains(&sentence), "{sentence}{MECHANISM}");
        }
        for generator in Generator::ALL {
            let sentence = format!(" {generator}: {}. ", generator.definition().doc);
            assert!(GENERATOR.contains(&sentence), "{sentence}{GENERATOR}");
        }
        assert!(MECHANISM.ends_with("it carries."));
    }
}

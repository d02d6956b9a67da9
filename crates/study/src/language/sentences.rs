//! The language's sentences about mechanisms, made from their definitions at compile time.

use stacklab_model::Mechanism;

/// The description of factor mechanism, with a sentence for each level.
pub(crate) const MECHANISM: &str = match str::from_utf8(&TEXT) {
    Ok(text) => text,
    Err(_) => panic!("the sentences are text"),
};

const TEXT: [u8; written::<0>().1] = written().0;

/// Writes the whole text as far as there is room, and returns its length.
const fn written<const ROOM: usize>() -> ([u8; ROOM], usize) {
    let mut text = ([0; ROOM], 0);
    text = put(text, "How packets cross the link between two routers (testbed.topology \"routed\"). ");
    let mut place = 0;
    while place < Mechanism::ALL.len() {
        let mechanism = Mechanism::ALL[place].definition();
        text = put(put(text, mechanism.name), ": ");
        text = put(put(text, mechanism.doc), ". ");
        place += 1;
    }
    put(text, "A mechanism is measured with the families that it carries.")
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
    fn every_mechanism_has_a_sentence() {
        for mechanism in Mechanism::ALL {
            let sentence = format!(" {mechanism}: {}. ", mechanism.definition().doc);
            assert!(MECHANISM.contains(&sentence), "{sentence}{MECHANISM}");
        }
        assert!(MECHANISM.ends_with("it carries."));
    }
}

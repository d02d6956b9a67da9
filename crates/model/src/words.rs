//! Words for people.

use std::fmt::Display;

/// A count with its noun: `1 block`, `2 blocks`; `3 boxes` and `4 families` where the noun ends so.
pub fn count<N: Copy + PartialEq + From<u8> + Display>(n: N, noun: &str) -> String {
    if n == N::from(1) {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{n} {stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
    }
}

/// A text whose first letter is a capital.
pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_letter_becomes_a_capital() {
        assert_eq!(capitalize("over UDP"), "Over UDP");
        assert_eq!(capitalize("écart"), "Écart");
        assert_eq!(capitalize(""), "");
    }

    #[test]
    fn one_is_singular_and_other_counts_are_plural() {
        assert_eq!(count(1_u64, "block"), "1 block");
        assert_eq!(count(0_usize, "block"), "0 blocks");
        assert_eq!(count(2_u32, "family"), "2 families");
        assert_eq!(count(3_u64, "day"), "3 days");
        assert_eq!(count(4_u64, "address"), "4 addresses");
        assert_eq!(count(5_u64, "branch"), "5 branches");
    }
}

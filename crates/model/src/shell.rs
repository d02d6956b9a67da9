//! Names of files in commands that are printed to be typed.

use std::path::Path;

/// The name of a file as a word of a POSIX shell's command: in quotes if it has a character with a meaning there, and
/// after `./` if it would be taken for an option.
pub fn quote_file(path: impl AsRef<Path>) -> String {
    let name = path.as_ref().display().to_string();
    let name = if name.starts_with('-') { format!("./{name}") } else { name };
    if !name.is_empty() && name.chars().all(is_plain) {
        return name;
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "_-./:@%+,=".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_one_word_for_a_shell() {
        for (name, word) in [
            ("lan.stacklab", "lan.stacklab"),
            ("../a-b/größe_2:1.stacklab", "../a-b/größe_2:1.stacklab"),
            ("my pair.stacklab", "'my pair.stacklab'"),
            ("-x.stacklab", "./-x.stacklab"),
            ("-a b", "'./-a b'"),
            ("it's.stacklab", r"'it'\''s.stacklab'"),
            ("~/$HOME;*", "'~/$HOME;*'"),
            ("", "''"),
        ] {
            assert_eq!(quote_file(name), word);
        }
    }
}

//! The key that a listening agent and its coordinators share, and what is proved with it.

use crate::hex::{bytes, hex};
use crate::sys;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use stacklab_model::decode_text;
use stacklab_traffic::host::files::{read_text_file, wait_for_user};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Name of the environment variable that holds the key.
pub const VARIABLE: &str = "STACKLAB_KEY";
/// Least length of a key that somebody chose, characters: 22 random characters of base64 are 128 bits.
const MIN_LENGTH: usize = 22;

/// A shared secret. Its text is shown nowhere but where it is made.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// A new key of 128 random bits.
    pub fn generate() -> Self {
        Key(random::<16>().chunks(4).map(hex).collect::<Vec<_>>().join("-"))
    }

    /// A key as its text, one word of ASCII; white space and a byte order mark around it do not count. `place` says in
    /// the error where it is from.
    pub fn of(text: &str, place: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if let Some(fault) = find_fault(text) {
            return Err(format!(
                "the key in {place} {fault}: a key is one word of ASCII characters, and nothing else"
            ));
        }
        let length = text.chars().count();
        if length < MIN_LENGTH {
            return Err(format!(
                "the key in {place} has {length} characters, and at least {MIN_LENGTH} are needed: use one that `agent \
                 --listen` printed, or `head -c 16 /dev/urandom | base64`"
            ));
        }
        Ok(Key(text.to_owned()))
    }

    /// The key of a file, or else of the environment; `None` if there is neither.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, String> {
        if let Some(path) = file {
            let text = read_text_file(path)
                .map_err(|reason| format!("could not read the key from {}: {reason}", path.display()))?;
            return Self::of(&text, &path.display().to_string()).map(Some);
        }
        match std::env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => Self::of(&text, VARIABLE).map(Some),
            _ => Ok(None),
        }
    }

    /// The key that a file keeps for its owner only. A missing file is created with a new key.
    pub fn read_or_create(path: &Path) -> Result<Self, String> {
        let place = path.display().to_string();
        let text = read_or_create_text(path, || Key::generate().0 + "\n")
            .map_err(|reason| format!("could not use the key in {place}: {reason}"))?;
        Self::of(&text, &place)
    }

    /// Its text, for the person who starts the agent.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Proves that this end knows the key: an HMAC with SHA-256 (RFC 2104) of these parts, hexadecimal.
    pub(crate) fn proof(&self, parts: &[impl AsRef<str>]) -> String {
        hex(&self.mac(parts).finalize().into_bytes())
    }

    /// Whether the other end knows the key, in constant time.
    pub(crate) fn accepts_proof(&self, parts: &[impl AsRef<str>], proof: &str) -> bool {
        bytes(proof).is_some_and(|proof| self.mac(parts).verify_slice(&proof).is_ok())
    }

    fn mac(&self, parts: &[impl AsRef<str>]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("HMAC takes keys of any length");
        for part in parts.iter().map(AsRef::as_ref) {
            // With its length: no two lists of parts are one text.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// What a text has that no key has, as files have it that were written for a shell or with a word processor.
fn find_fault(text: &str) -> Option<String> {
    if let Some(odd) = text.chars().find(|letter| !letter.is_ascii()) {
        return Some(format!("has the character U+{:04X}", u32::from(odd)));
    }
    if text.lines().nth(1).is_some() {
        return Some("has more than one line".to_owned());
    }
    if let Some(odd) = text.chars().find(|letter| !letter.is_ascii_graphic()) {
        return Some(if odd == ' ' { "has a space in it".to_owned() } else { format!("has {odd:?} in it") });
    }
    if text.starts_with(&format!("{VARIABLE}=")) {
        return Some(format!("begins with {VARIABLE}="));
    }
    text.starts_with(['"', '\'']).then(|| "is in quotes".to_owned())
}

/// The text of a file that only its owner may read. A missing file is created with the text that `make` returns.
pub(crate) fn read_or_create_text(path: &Path, make: impl FnOnce() -> String) -> io::Result<String> {
    match sys::own_file().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            let text = make();
            file.write_all(text.as_bytes())?;
            Ok(text)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut file = wait_for_user(|| File::open(path))?;
            if sys::others_may_read(&file)? {
                return Err(io::Error::other("other users may read it: chmod 600"));
            }
            let mut bytes = Vec::new();
            wait_for_user(|| file.read_to_end(&mut bytes))?;
            decode_text(bytes)
        }
        Err(error) => Err(error),
    }
}

/// A number that is used once, hexadecimal.
pub(crate) fn challenge() -> String {
    hex(&random::<32>())
}

/// This many random bytes, hexadecimal; an error if the system has none.
pub fn random_hex(count: usize) -> Result<String, getrandom::Error> {
    let mut random = vec![0; count];
    getrandom::fill(&mut random)?;
    Ok(hex(&random))
}

/// Random bytes of a secret.
pub(crate) fn random<const COUNT: usize>() -> [u8; COUNT] {
    let mut random = [0; COUNT];
    getrandom::fill(&mut random).expect("the system has random numbers");
    random
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_this_key_and_these_parts() {
        let key = Key::generate();
        let other = Key::generate();
        let proof = key.proof(&["a", "bc"]);
        assert!(key.accepts_proof(&["a", "bc"], &proof));
        assert!(!key.accepts_proof(&["ab", "c"], &proof) && !other.accepts_proof(&["a", "bc"], &proof));
        assert!(!key.accepts_proof(&["a", "bc"], "") && !key.accepts_proof(&["a", "bc"], "zz"));
        assert_ne!(key.reveal(), other.reveal());
        assert_eq!(key.reveal().len(), 35);
    }

    #[test]
    fn the_mac_is_hmac_with_sha_256() {
        // RFC 4231, test case 2, whose data is one part here, with its length before it.
        let key = Key("Jefe".to_owned());
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        let published = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&mac.finalize().into_bytes()), published);
        assert_ne!(key.proof(&["what do ya want for nothing?"]), published);
    }

    #[test]
    fn short_chosen_key_is_refused_with_the_way_out() {
        let refused = Key::of(" 1234 \n", "key.txt").err().unwrap().to_string();
        assert!(refused.contains("key.txt has 4 characters") && refused.contains("at least 22"), "{refused}");
        assert!(Key::of(&"x".repeat(22), "key.txt").is_ok());
        let lost = Key::find(Some(Path::new("/nothing/here"))).err().unwrap().to_string();
        assert!(lost.contains("/nothing/here"), "{lost}");
    }

    #[test]
    fn a_key_that_an_editor_on_windows_saved_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let text = "0123abcd-4567cdef-89ab0123-cdef4567";
        let saved = format!("{text}\r\n");
        let wide = saved.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [
            saved.clone().into_bytes(),
            format!("\u{feff}{saved}").into_bytes(),
            [b"\xff\xfe".to_vec(), wide].concat(),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(Key::find(Some(&path)).unwrap().unwrap().reveal(), text);
        }
    }

    #[test]
    fn key_with_anything_beside_it_is_refused() {
        let key = "0123abcd-4567cdef-89ab0123-cdef4567";
        for (text, fault) in [
            (format!("# host1\n{key}\n"), "more than one line"),
            (format!("{key}\n{key}\n"), "more than one line"),
            (format!("STACKLAB_KEY={key}"), "begins with STACKLAB_KEY="),
            (format!("\"{key}\""), "in quotes"),
            (format!("{key} # host1"), "a space in it"),
            (format!("{key}\tb"), "'\\t' in it"),
            (format!("\u{200b}{key}"), "U+200B"),
            (key.replace('-', "\u{2013}"), "U+2013"),
        ] {
            let refused = Key::of(&text, "key.txt").err().unwrap_or_default();
            assert!(refused.contains("key.txt") && refused.contains(fault), "{text}: {refused}");
        }
        assert_eq!(Key::of(&format!("\u{feff}{key}\r\n"), VARIABLE).unwrap().reveal(), key);
    }

    #[cfg(unix)]
    #[test]
    fn a_kept_key_is_made_once_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = Key::read_or_create(&path).unwrap();
        assert_eq!(Key::read_or_create(&path).unwrap().reveal(), made.reveal());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Key::find(Some(&path)).unwrap().unwrap().reveal(), made.reveal());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Key::read_or_create(&path).err().unwrap();
        assert!(refused.contains("chmod 600"), "{refused}");
        assert!(Key::read_or_create(Path::new("/nothing/here")).err().unwrap().contains("/nothing/here"));
    }
}

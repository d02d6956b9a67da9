//! Host names as DNS has them: of ASCII letters, where a user has written others (RFC 5890).

use std::borrow::Cow;

/// The name in ASCII: an internationalised one as A-labels (`xn--..`), by UTS 46.
///
/// # Errors
/// What is wrong with the name, in a sentence.
pub fn to_ascii(name: &str) -> Result<Cow<'_, str>, String> {
    if name.is_ascii() {
        return Ok(Cow::Borrowed(name));
    }
    let ascii = idna::domain_to_ascii(name).ok().filter(|ascii| !ascii.is_empty());
    ascii.map(Cow::Owned).ok_or_else(|| {
        format!("`{name}` is not an internationalised host name (RFC 5890): write it as in DNS, with labels `xn--..`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn international_names_become_a_labels() {
        for (name, ascii) in [
            ("Example.org", "Example.org"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("e\u{301}.example", "xn--9ca.example"),
            ("straße.example", "xn--strae-oqa.example"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
        ] {
            assert_eq!(to_ascii(name).as_deref(), Ok(ascii), "{name}");
        }
        for wrong in ["\u{ad}", "a\u{fffd}.example", "\u{301}a.example"] {
            assert!(to_ascii(wrong).unwrap_err().contains("xn--"), "{wrong:?}");
        }
    }
}

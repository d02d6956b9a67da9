//! Attributes of netlink messages, as bytes (linux/netlink.h).

/// The bit of an attribute's kind that says that its value is attributes.
pub(super) const NESTED: u16 = 1 << 15;

/// An attribute, filled up to a multiple of four bytes.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len() as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

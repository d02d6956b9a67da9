//! Encodes attributes of netlink messages (linux/netlink.h).

/// The bit in an attribute's type which marks nested attributes.
pub(super) const NESTED: u16 = 1 << 15;

/// An attribute, padded to a multiple of four bytes.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len() as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

//! The ethtool calls that read and switch an interface's features (linux/ethtool.h). They have no netlink form on
//! older kernels, and need no library.

use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// The string set that holds the names of features.
const FEATURE_NAMES: u32 = 4;
/// The number of words in one name (32 bytes, zero-terminated).
const NAME_WORDS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Feature {
    /// The kernel's name for it, for example `tx-tcp-segmentation`.
    pub name: String,
    pub active: bool,
}

/// The features of an interface in the calling thread's namespace, in the kernel's order.
pub(crate) fn features(interface: &str) -> io::Result<Vec<Feature>> {
    let count = feature_count(interface)?;

    // struct ethtool_gstrings: cmd, string_set, len, data
    let mut names = vec![0; 3 + count * NAME_WORDS];
    names[..3].copy_from_slice(&[GET_STRINGS, FEATURE_NAMES, count as u32]);
    call(interface, &mut names)?;

    // struct ethtool_gfeatures: cmd, size, then per block of 32: available, requested, active, never_changed
    let blocks = count.div_ceil(32);
    let mut states = vec![0; 2 + blocks * 4];
    states[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    call(interface, &mut states)?;

    let feature = |(n, name): (usize, &[u32])| Feature {
        name: text(name),
        active: states[2 + n / 32 * 4 + 2] & (1 << (n % 32)) != 0,
    };
    Ok(names[3..].chunks_exact(NAME_WORDS).enumerate().map(feature).collect())
}

/// Requests that features be switched off, by their positions in the list of `count` features. Features that the
/// kernel cannot switch stay unchanged without an error: read them again.
pub(crate) fn switch_off(interface: &str, places: &[usize], count: usize) -> io::Result<()> {
    // struct ethtool_sfeatures: cmd, size, then per block of 32: valid, requested
    let blocks = count.div_ceil(32);
    let mut request = vec![0; 2 + blocks * 2];
    request[..2].copy_from_slice(&[SET_FEATURES, blocks as u32]);
    for place in places {
        request[2 + place / 32 * 2] |= 1 << (place % 32);
    }
    call(interface, &mut request)
}

fn feature_count(interface: &str) -> io::Result<usize> {
    // struct ethtool_sset_info: cmd, reserved, a 64-bit mask of string sets, then one count per set in the mask
    let mut info = [GET_SET_INFO, 0, 0, 0, 0];
    let mask = 1_u64 << FEATURE_NAMES;
    for (word, bytes) in info[2..4].iter_mut().zip(mask.to_ne_bytes().chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    call(interface, &mut info)?;
    if info[2..4] == [0, 0] {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel does not name its features"));
    }
    Ok(info[4] as usize)
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Makes one ethtool call. The request begins with its command and must have room for all that the command writes.
fn call(interface: &str, request: &mut [u32]) -> io::Result<()> {
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the interface's name is too long"));
    }
    // Any socket works: it only selects the namespace.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: `ifreq` is plain C data (bytes, numbers, a pointer), for which all zeros is a valid value.
    let mut header: libc::ifreq = unsafe { zeroed() };
    for (to, from) in header.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    header.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    // SAFETY: the name is zero-terminated (shorter than the zeroed array). `ifru_data` points to `request`, which
    // outlives the call, is aligned for the words that the kernel's structures are made of, and is as long as its
    // command writes: GET_SET_INFO one count for the one set asked for; GET_STRINGS as many names as GET_SET_INFO
    // has just counted, a constant of the running kernel; GET_FEATURES no more blocks than its size field says;
    // SET_FEATURES only reads.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut header) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

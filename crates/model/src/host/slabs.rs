//! What the objects of the kernel's allocator take, apart from the room that it keeps for further ones.

use std::fs;

const SLABINFO: &str = "/proc/slabinfo";
const CACHES: &str = "/sys/kernel/slab";
/// Where a program finds its machine's page size, by this key.
const AUXILIARY: &str = "/proc/self/auxv";
const PAGE_SIZE_KEY: usize = 6;

/// Pages of caches for objects of one size each, and the part of them that objects take.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slabs {
    pub(super) page_bytes: u64,
    pub(super) object_bytes: u64,
}

/// How often they are read at most: a cache may vanish, as that of a removed module, between two of its files.
const MAX_READINGS: usize = 5;

/// The slabs of the caches that the kernel gives back only when their objects are freed, or of all caches. `None` where
/// this program may not read them, which only root may, or does not understand them.
pub(super) fn read_slabs(with_reclaimable: bool) -> Option<Slabs> {
    for _ in 0..MAX_READINGS {
        let text = fs::read_to_string(SLABINFO).ok()?;
        let page = read_page_size()?;
        let sum = if with_reclaimable {
            add_up(&text, page, |_| Some(true))
        } else {
            add_up(&text, page, read_whether_lasting)
        };
        if sum.is_some() {
            return sum;
        }
    }
    None
}

/// The sum of the caches that are weighed. `None` if that is not known of one of them, or if a line is not understood.
fn add_up(slabinfo: &str, page: u64, is_weighed: impl Fn(&str) -> Option<bool>) -> Option<Slabs> {
    let mut sum = Slabs::default();
    for line in slabinfo.lines().skip(2) {
        let (name, slabs) = parse_cache(line, page)?;
        if is_weighed(name)? {
            sum.page_bytes = sum.page_bytes.saturating_add(slabs.page_bytes);
            sum.object_bytes = sum.object_bytes.saturating_add(slabs.object_bytes);
        }
    }
    Some(sum)
}

/// A cache's name and slabs. Each object has its share of what a slab leaves unused at its end.
fn parse_cache(line: &str, page: u64) -> Option<(&str, Slabs)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [active, _, _, objects_per_slab, pages_per_slab] = numbers[..] else { return None };
    let (_, rest) = line.split_once("slabdata")?;
    let slabs: u64 = rest.split_whitespace().nth(1)?.parse().ok()?;
    let slab_bytes = pages_per_slab.checked_mul(page)?;
    let found = Slabs {
        page_bytes: slabs.checked_mul(slab_bytes)?,
        object_bytes: active.checked_mul(slab_bytes)?.checked_div(objects_per_slab)?,
    };
    Some((name, found))
}

/// Whether a cache is not of those that the kernel empties when programs need memory: files and folders, mostly. `None`
/// if the kernel does not say.
fn read_whether_lasting(cache: &str) -> Option<bool> {
    let text = fs::read_to_string(format!("{CACHES}/{cache}/reclaim_account")).ok()?;
    Some(text.trim() != "1")
}

fn read_page_size() -> Option<u64> {
    find_page_size(&fs::read(AUXILIARY).ok()?)
}

/// The page size in a list of pairs of a key and a value, each as wide as an address.
fn find_page_size(auxiliary: &[u8]) -> Option<u64> {
    let mut words = auxiliary.chunks_exact(size_of::<usize>());
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        if usize::from_ne_bytes(key.try_into().ok()?) == PAGE_SIZE_KEY {
            return Some(usize::from_ne_bytes(value.try_into().ok()?) as u64);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEIGHBOURS: &str = "kmalloc-512        87561 111792    512   16    2 : tunables    0    0    0 : \
                              slabdata   6987   6987      0";

    #[test]
    fn an_object_is_weighed_with_its_share_of_a_slab() {
        let expected = Slabs { page_bytes: 6987 * 8192, object_bytes: 87_561 * 512 };
        assert_eq!(parse_cache(NEIGHBOURS, 4096), Some(("kmalloc-512", expected)));
        let routes = "ip6_dst_cache 32 100 240 17 1 : tunables 0 0 0 : slabdata 3 6 0";
        let expected = Slabs { page_bytes: 6 * 4096, object_bytes: 32 * 4096 / 17 };
        assert_eq!(parse_cache(routes, 4096), Some(("ip6_dst_cache", expected)));
    }

    #[test]
    fn a_line_of_another_shape_has_no_objects() {
        for line in [
            "",
            "dentry",
            "dentry 1 2 3",
            "dentry 1 2 3 0 1 : slabdata 1 1 0",
            "dentry 1 2 3 4 5 : slabdata 1",
        ] {
            assert_eq!(parse_cache(line, 4096), None, "{line}");
        }
    }

    #[test]
    fn a_sum_has_all_caches_or_is_none() {
        let routes = "ip6_dst_cache 32 100 240 17 1 : tunables 0 0 0 : slabdata 3 6 0";
        let text = format!("slabinfo - version: 2.1\n# name\n{NEIGHBOURS}\n{routes}\n");
        let of_both =
            Slabs { page_bytes: 6987 * 8192 + 6 * 4096, object_bytes: 87_561 * 512 + 32 * 4096 / 17 };
        assert_eq!(add_up(&text, 4096, |_| Some(true)), Some(of_both));
        let of_routes = Slabs { page_bytes: 6 * 4096, object_bytes: 32 * 4096 / 17 };
        assert_eq!(add_up(&text, 4096, |name| Some(name == "ip6_dst_cache")), Some(of_routes));
        // The other cache has vanished.
        assert_eq!(add_up(&text, 4096, |name| (name == "ip6_dst_cache").then_some(true)), None);
        assert_eq!(add_up(&format!("{text}dentry\n"), 4096, |_| Some(true)), None);
    }

    #[test]
    fn the_page_size_is_found_by_its_key() {
        for (words, found) in
            [([33, 1, PAGE_SIZE_KEY, 65_536], Some(65_536)), ([33, PAGE_SIZE_KEY, 0, 0], None)]
        {
            assert_eq!(find_page_size(&words.map(usize::to_ne_bytes).concat()), found);
        }
    }
}

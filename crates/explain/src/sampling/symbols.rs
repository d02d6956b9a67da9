//! The kernel's functions by address.

use std::fs;
use std::io;

/// The longest function, bytes.
const LONGEST: u64 = 64 << 10;

/// The functions of the running kernel and its modules, by address.
pub(crate) struct Symbols {
    /// Addresses, ascending, with names.
    all: Vec<(u64, String)>,
}

impl Symbols {
    /// The running kernel's.
    ///
    /// # Errors
    /// When they cannot be read, or addresses are hidden (kernel.kptr_restrict, without CAP_SYSLOG).
    pub(crate) fn of_kernel() -> io::Result<Self> {
        let symbols = Symbols::parse(&fs::read_to_string("/proc/kallsyms")?);
        if symbols.all.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the addresses in /proc/kallsyms are hidden (kernel.kptr_restrict must be below 2)",
            ));
        }
        Ok(symbols)
    }

    /// Lines as /proc/kallsyms has them: address, type, name, module. Hidden addresses are zero, and left out.
    pub(crate) fn parse(text: &str) -> Self {
        let mut all: Vec<(u64, String)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
                let address = u64::from_str_radix(address, 16).ok().filter(|address| *address > 0)?;
                matches!(kind, "t" | "T" | "w" | "W").then(|| (address, plain(name).to_owned()))
            })
            .collect();
        all.sort();
        Symbols { all }
    }

    /// The number of the function that holds this address, for [`Symbols::name`]; `None` below the first one.
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let after = self.all.partition_point(|(start, _)| *start <= address);
        after.checked_sub(1).map(|place| place as u32)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The function that holds this address, unless it begins further away than a function is long: code without a
    /// symbol may lie between the kernel and its modules.
    pub(crate) fn name_near(&self, address: u64) -> Option<&str> {
        let (start, name) = &self.all[self.find(address)? as usize];
        (address - start < LONGEST).then_some(name)
    }

    /// The name of a function, without what the compiler adds to parts of it.
    pub(crate) fn name(&self, function: u32) -> &str {
        self.all.get(function as usize).map_or("?", |(_, name)| name)
    }
}

/// A name without the compiler's endings (`.isra.0`, `.cold`) and beginnings (`__pfx_`).
fn plain(name: &str) -> &str {
    let name = name.strip_prefix("__pfx_").unwrap_or(name);
    match name.find('.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_function_before_it() {
        let text = "ffffffff81000100 T ip_output\nffffffff81000000 t __pfx_ip_rcv.isra.0\n\
                    ffffffff81000200 D data\n0000000000000000 T hidden\nffffffffc0000000 t sit_init\t[sit]\n";
        let symbols = Symbols::parse(text);
        let name = |address| symbols.find(address).map(|function| symbols.name(function));
        assert_eq!(name(0xffff_ffff_8100_00ff), Some("ip_rcv"));
        assert_eq!(name(0xffff_ffff_8100_0100), Some("ip_output"));
        assert_eq!(name(0xffff_ffff_c000_0010), Some("sit_init"));
        assert_eq!(name(5), None);
        assert_eq!(symbols.name_near(0xffff_ffff_8100_01ff), Some("ip_output"));
        assert_eq!(symbols.name_near(0xffff_ffff_a000_0000), None);
    }
}

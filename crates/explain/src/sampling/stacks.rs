//! Call chains, each kept once.

use crate::sampling::symbols::Symbols;
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct Stacks {
    /// The functions of each, the outermost one first, as numbers of `frames`.
    pub all: Vec<Vec<u32>>,
    pub frames: Vec<String>,
    by_addresses: HashMap<Vec<u64>, u32>,
    by_functions: HashMap<Vec<u32>, u32>,
    by_name: HashMap<String, u32>,
}

impl Stacks {
    /// The number of a chain of kernel addresses: what ran, then return addresses of its callers.
    pub(crate) fn of_kernel(&mut self, chain: &[u64], symbols: &Symbols) -> u32 {
        if let Some(known) = self.by_addresses.get(chain) {
            return *known;
        }
        let functions: Vec<u32> = called(chain)
            .map(|address| self.frame(symbols.find(address).map_or("?", |found| symbols.name(found))))
            .collect();
        let number = self.number(functions.into_iter().rev().collect());
        self.by_addresses.insert(chain.to_vec(), number);
        number
    }

    pub(crate) fn of_name(&mut self, name: &str) -> u32 {
        let frame = self.frame(name);
        self.number(vec![frame])
    }

    fn frame(&mut self, name: &str) -> u32 {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        self.frames.push(name.to_owned());
        let number = self.frames.len() as u32 - 1;
        self.by_name.insert(name.to_owned(), number);
        number
    }

    fn number(&mut self, functions: Vec<u32>) -> u32 {
        let all = &mut self.all;
        *self.by_functions.entry(functions).or_insert_with_key(|functions| {
            all.push(functions.clone());
            all.len() as u32 - 1
        })
    }
}

/// Addresses within the functions of a chain: a return address is behind the call.
pub(crate) fn called(chain: &[u64]) -> impl Iterator<Item = u64> {
    chain
        .iter()
        .enumerate()
        .map(|(depth, address)| if depth == 0 { *address } else { address.saturating_sub(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_of_the_same_functions_are_one_and_begin_outside() {
        let symbols = Symbols::parse("1000 T entry\n2000 T ip_output\n3000 T copy\n");
        let mut stacks = Stacks::default();
        // A return address right behind a function is of that function.
        let first = stacks.of_kernel(&[0x3004, 0x2010, 0x2000], &symbols);
        assert_eq!(stacks.of_kernel(&[0x3008, 0x2020, 0x1900], &symbols), first);
        let user = stacks.of_name("user (a)");
        assert_eq!((stacks.of_name("user (a)"), user == first), (user, false));
        let names = |stack: u32| {
            stacks.all[stack as usize].iter().map(|frame| stacks.frames[*frame as usize].as_str())
        };
        assert!(names(first).eq(["entry", "ip_output", "copy"]), "{:?}", stacks.frames);
        assert!(names(user).eq(["user (a)"]));
    }
}

//! Code lengths that encoders give to symbols of known frequencies.
//!
//! Every encoder makes an optimal code, or nearly, but there are many such. Which one comes out is a matter
//! of how ties are broken and how lengths are limited:
//!
//! * zlib's rule (deflate's original one): a heap, in which of two nodes of one weight the flatter comes first;
//!   lengths over the limit are repaired afterwards; there are two codes at least.
//! * package-merge, which is optimal under the limit, with lengths dealt out by frequency and then symbol, and
//!   of a symbol and a package of one weight either first.
//!
//! What an encoder of another kind does differently is told symbol by symbol (`header`).

use super::codes::MAX_BITS;

/// A rule by which lengths are had from frequencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    Heap,
    SymbolsFirst,
    PackagesFirst,
}

impl Rule {
    /// The rules by their numbers in side information.
    pub const ALL: [Self; 3] = [Self::Heap, Self::SymbolsFirst, Self::PackagesFirst];
}

/// Code lengths, none over `limit`, for symbols that occur `frequencies` times; at most 286 occur.
#[must_use]
pub fn lengths<const N: usize>(rule: Rule, frequencies: &[u32; N], limit: usize) -> [u8; N] {
    match rule {
        Rule::Heap => Heap::new(frequencies).lengths(limit),
        Rule::SymbolsFirst => package_merge(frequencies, limit, false),
        Rule::PackagesFirst => package_merge(frequencies, limit, true),
    }
}

/// A tree that is built up in a heap; nodes below N are symbols.
struct Heap<const N: usize> {
    weights: Vec<u64>,
    depths: Vec<u16>,
    parents: Vec<u16>,
    /// A heap with the least at 1.
    nodes: Vec<u16>,
    /// Nodes in the order in which they were taken from the heap, the root last.
    taken: Vec<u16>,
}

impl<const N: usize> Heap<N> {
    fn new(frequencies: &[u32; N]) -> Self {
        let mut weights: Vec<u64> = frequencies.iter().map(|&frequency| frequency.into()).collect();
        // Two codes at least: the missing ones go to the symbols after the last, below 3, or else to the first.
        let mut after_last = weights
            .iter()
            .rposition(|&weight| weight > 0)
            .map_or(0, |last| last + 1);
        for _ in weights.iter().filter(|weight| **weight > 0).count()..2 {
            let forced = if after_last <= 2 { after_last } else { 0 };
            after_last = after_last.max(forced + 1);
            weights[forced] = 1;
        }
        let mut nodes = vec![0];
        nodes.extend((0..N as u16).filter(|&symbol| weights[usize::from(symbol)] > 0));
        Self {
            weights,
            depths: vec![0; N],
            parents: vec![0; N],
            nodes,
            taken: Vec::new(),
        }
    }

    fn lengths(mut self, limit: usize) -> [u8; N] {
        self.build();
        let (lengths, counts) = self.depths_within(limit);
        match counts {
            None => lengths,
            Some(counts) => self.deal(&counts),
        }
    }

    fn build(&mut self) {
        for at in (1..=(self.nodes.len() - 1) / 2).rev() {
            self.sift(at);
        }
        while self.nodes.len() > 2 {
            let first = self.nodes.swap_remove(1);
            self.sift(1);
            let second = self.nodes[1];
            self.taken.extend([first, second]);
            self.nodes[1] = self.join(first.into(), second.into());
            self.sift(1);
        }
        self.taken.push(self.nodes[1]);
    }

    fn join(&mut self, first: usize, second: usize) -> u16 {
        let node = self.weights.len() as u16;
        self.weights.push(self.weights[first] + self.weights[second]);
        self.depths.push(self.depths[first].max(self.depths[second]) + 1);
        self.parents.push(0);
        self.parents[first] = node;
        self.parents[second] = node;
        node
    }

    fn sift(&mut self, mut at: usize) {
        let node = self.nodes[at];
        loop {
            let mut child = 2 * at;
            if child + 1 < self.nodes.len() && self.is_first(self.nodes[child + 1], self.nodes[child]) {
                child += 1;
            }
            if child >= self.nodes.len() || self.is_first(node, self.nodes[child]) {
                break;
            }
            self.nodes[at] = self.nodes[child];
            at = child;
        }
        self.nodes[at] = node;
    }

    fn is_first(&self, one: u16, other: u16) -> bool {
        let key = |node: u16| (self.weights[usize::from(node)], self.depths[usize::from(node)]);
        key(one) <= key(other)
    }

    /// Depths of symbols, cut off at the limit; and if any was cut, how many symbols are to have each length.
    fn depths_within(&self, limit: usize) -> ([u8; N], Option<[u32; MAX_BITS + 1]>) {
        let mut depths = vec![0_usize; self.weights.len()];
        let mut lengths = [0; N];
        let mut counts = [0; MAX_BITS + 1];
        let mut cut = 0_i32;
        for &node in self.taken.iter().rev().skip(1) {
            let node = usize::from(node);
            let depth = depths[usize::from(self.parents[node])] + 1;
            cut += i32::from(depth > limit);
            depths[node] = depth.min(limit);
            if node < N {
                lengths[node] = depths[node] as u8;
                counts[depths[node]] += 1;
            }
        }
        (lengths, (cut > 0).then(|| repair(counts, limit, cut)))
    }

    /// Gives the longest lengths to the symbols that were taken first.
    fn deal(&self, counts: &[u32; MAX_BITS + 1]) -> [u8; N] {
        let mut lengths = [0; N];
        let mut symbols = self.taken.iter().filter(|&&node| usize::from(node) < N);
        for length in (1..=MAX_BITS).rev() {
            for &symbol in symbols.by_ref().take(counts[length] as usize) {
                lengths[usize::from(symbol)] = length as u8;
            }
        }
        lengths
    }
}

/// Makes room for codes that were cut off at the limit: for two of them one that is shorter goes down a level.
fn repair(mut counts: [u32; MAX_BITS + 1], limit: usize, cut: i32) -> [u32; MAX_BITS + 1] {
    for _ in 0..(cut + 1) / 2 {
        if let Some(shorter) = (1..limit).rev().find(|&length| counts[length] > 0) {
            counts[shorter] -= 1;
            counts[shorter + 1] += 2;
            counts[limit] -= 1;
        }
    }
    counts
}

/// Package-merge. Symbols in order of frequency, then number; the rarest get the longest codes.
fn package_merge<const N: usize>(frequencies: &[u32; N], limit: usize, packages_first: bool) -> [u8; N] {
    let mut symbols: Vec<usize> = (0..N).filter(|&symbol| frequencies[symbol] > 0).collect();
    symbols.sort_by_key(|&symbol| frequencies[symbol]);
    let mut lengths = [0; N];
    if symbols.len() < 3 {
        for symbol in symbols {
            lengths[symbol] = 1;
        }
        return lengths;
    }
    let weights: Vec<u64> = symbols.iter().map(|&symbol| frequencies[symbol].into()).collect();
    let levels = if packages_first {
        levels(weights, limit, |leaf, package| leaf < package)
    } else {
        levels(weights, limit, |leaf, package| leaf <= package)
    };
    let mut take = 2 * symbols.len() - 2;
    for level in levels.iter().rev() {
        let leaves = level.iter().take(take).filter(|is_leaf| **is_leaf).count();
        for &symbol in &symbols[..leaves] {
            lengths[symbol] += 1;
        }
        take = 2 * (take - leaves);
    }
    lengths
}

/// For each level, from the deepest, which of its items in order of weight are symbols; the others are packages
/// of two items of the level before. `is_first` is whether a symbol of one weight comes before a package of another.
fn levels(mut weights: Vec<u64>, limit: usize, is_first: impl Fn(u64, u64) -> bool) -> Vec<Vec<bool>> {
    // After the last of each list, what nothing comes after.
    const LAST: u64 = u64::MAX;
    let symbols = weights.len();
    let mut levels = Vec::with_capacity(limit);
    levels.push(vec![true; symbols]);
    let mut items = Vec::with_capacity(2 * symbols);
    items.extend(&weights);
    weights.push(LAST);
    let mut packages = Vec::with_capacity(symbols + 1);
    for _ in 1..limit {
        packages.clear();
        packages.extend(items.chunks_exact(2).map(|pair| pair[0] + pair[1]));
        let count = symbols + packages.len();
        packages.push(LAST);
        items.clear();
        let (mut leaf, mut package) = (0, 0);
        let mut take = |_| {
            let (of_leaf, of_package) = (weights[leaf], packages[package]);
            let takes_leaf = is_first(of_leaf, of_package);
            if takes_leaf {
                items.push(of_leaf);
                leaf += 1;
            } else {
                items.push(of_package);
                package += 1;
            }
            takes_leaf
        };
        levels.push((0..count).map(&mut take).collect());
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::{Rule, lengths};
    use crate::deflate::codes::is_decodable;

    #[test]
    fn codes_are_complete_and_within_the_limit_for_any_frequencies() {
        let mut state = 1_u32;
        for round in 0..300 {
            let mut frequencies = [0_u32; 286];
            let used = 2 + round % 285;
            for frequency in frequencies.iter_mut().take(used) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *frequency = 1 + (state >> 8 >> (state % 24));
            }
            for rule in Rule::ALL {
                let lengths = lengths(rule, &frequencies, 15);
                assert!(is_decodable(&lengths) && lengths.iter().all(|&length| length <= 15));
                let coded = lengths.iter().filter(|length| **length > 0).count();
                assert_eq!(used, coded, "{rule:?}");
            }
        }
    }

    #[test]
    fn steep_frequencies_are_kept_within_the_limit() {
        let mut frequencies = [0_u32; 19];
        let (mut one, mut other) = (1, 1);
        for frequency in &mut frequencies {
            *frequency = one;
            (one, other) = (other, one + other);
        }
        for rule in Rule::ALL {
            let lengths = lengths(rule, &frequencies, 7);
            assert!(
                is_decodable(&lengths) && lengths.iter().all(|&length| length <= 7),
                "{rule:?}"
            );
        }
    }

    #[test]
    fn few_symbols() {
        let none = [0; 30];
        assert_eq!([1, 1, 0], lengths(Rule::Heap, &none, 15)[..3]);
        assert_eq!([0; 30], lengths(Rule::SymbolsFirst, &none, 15));
        let mut one = none;
        one[7] = 9;
        assert_eq!(1, lengths(Rule::SymbolsFirst, &one, 15)[7]);
        let lengths = lengths(Rule::Heap, &one, 15);
        assert_eq!((1, 1), (lengths[0], lengths[7]));
    }
}

//! Streams for tests, with everything in them that RFC 1951 allows and no encoder does.

use super::Token;
use super::bits::BitWriter;
use super::codes::{DISTANCES, END, LITERALS, Lengths, distance_slot, fixed_lengths, length_slot};
use super::dynamic::{Header, MAX_LITERALS, MIN_LITERALS, Run};
use super::huffman::{Rule, lengths};
use super::inflate::Kind;
use super::runs;
use super::write::{self, TokenWriter};

/// Numbers that look random, from a seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    /// A number below `below`.
    pub fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % below
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of any size up to `most`, small ones as often as large.
    fn up_to(&mut self, most: usize) -> usize {
        let bits = 1 + self.below(most.ilog2() as usize + 1);
        self.below(1 << bits).min(most)
    }
}

/// A stream of `blocks` blocks, with at most `tokens` tokens each, and its plain bytes.
pub fn stream(seed: u64, blocks: usize, tokens: usize) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random::new(seed);
    let (mut writer, mut plain) = (BitWriter::default(), Vec::new());
    for number in 1..=blocks {
        let last = number == blocks;
        match random.below(6) {
            0 => add_stored(&mut random, &mut writer, &mut plain, last),
            kind => {
                let from = plain.len();
                let tokens = add_tokens(&mut random, &mut plain, tokens);
                add_block(&mut random, &mut writer, &plain, from, &tokens, kind > 1, last);
            }
        }
    }
    let bits = writer.position().wrapping_neg() % 8;
    writer.put(random.below(1 << bits) as u64, bits as u32);
    (writer.finish().0, plain)
}

fn add_stored(random: &mut Random, writer: &mut BitWriter, plain: &mut Vec<u8>, last: bool) {
    let size = if random.one_in(3) { 0 } else { random.up_to(3000) };
    let bytes: Vec<u8> = (0..size).map(|_| random.below(256) as u8).collect();
    write::start(writer, last, &Kind::Stored { padding: 0 });
    let bits = writer.position().wrapping_neg() % 8;
    let padding = if random.one_in(2) {
        0
    } else {
        random.below(1 << bits)
    };
    write::padding(writer, padding as u8).unwrap();
    write::stored(writer, &bytes);
    plain.extend(bytes);
}

fn add_tokens(random: &mut Random, plain: &mut Vec<u8>, most: usize) -> Vec<Token> {
    let (count, rarity, range) = (random.up_to(most), 1 + random.below(5), 1 + random.up_to(255));
    let mut tokens = Vec::new();
    for _ in 0..count {
        if plain.is_empty() || random.one_in(rarity) {
            plain.push(random.below(range) as u8);
            tokens.push(Token::LITERAL);
            continue;
        }
        let reach = plain.len().min(32768);
        let dist = 1 + random.up_to(reach).min(reach - 1);
        let len = 3 + random.up_to(255).min(255);
        for _ in 0..len {
            plain.push(plain[plain.len() - dist]);
        }
        let odd = len == 258 && random.one_in(2);
        tokens.push(if odd {
            Token::odd_258(dist)
        } else {
            Token::matched(len, dist)
        });
    }
    tokens
}

fn add_block(
    random: &mut Random,
    writer: &mut BitWriter,
    plain: &[u8],
    from: usize,
    tokens: &[Token],
    dynamic: bool,
    last: bool,
) {
    let mut kind = Kind::Fixed;
    if dynamic {
        kind = Kind::Dynamic(Box::new(header(random, plain, from, tokens)));
    }
    write::start(writer, last, &kind);
    let token_writer = TokenWriter::new(&kind.lengths().unwrap_or_else(fixed_lengths));
    token_writer.tokens(writer, plain, from, tokens).unwrap();
    token_writer.end(writer);
}

fn header(random: &mut Random, plain: &[u8], from: usize, tokens: &[Token]) -> Header {
    let mut header = Header::of_lengths(code_lengths(random, plain, from, tokens));
    let used = |lengths: &[u8]| {
        lengths
            .iter()
            .rposition(|&length| length > 0)
            .map_or(0, |at| at + 1)
    };
    let (literals, distances) = (used(&header.lengths.literals), used(&header.lengths.distances));
    header.literals = literals.max(MIN_LITERALS);
    header.distances = distances.max(1);
    if random.one_in(4) {
        header.literals += random.below(MAX_LITERALS - header.literals + 1);
        header.distances += random.below(DISTANCES - header.distances + 1);
    }
    let all = runs::join(&header.lengths, header.literals, header.distances);
    header.runs = any_runs(random, &all);
    if random.one_in(3) {
        header.length_lengths = std::array::from_fn(|symbol| 4 + u8::from(symbol > 12));
    } else {
        header.length_lengths = lengths(any_rule(random), &runs::frequencies(&header.runs), 7);
    }
    header.code_lengths = 19;
    header
}

fn any_rule(random: &mut Random) -> Rule {
    Rule::ALL[random.below(3)]
}

/// Lengths by which the tokens have codes: good ones, or shuffled, or with symbols that do not occur.
fn code_lengths(random: &mut Random, plain: &[u8], from: usize, tokens: &[Token]) -> Lengths {
    let (mut literals, mut distances) = ([0_u32; MAX_LITERALS], [0_u32; DISTANCES]);
    literals[END] = 1;
    let mut at = from;
    for token in tokens {
        if token.is_literal() {
            literals[usize::from(plain[at])] += 1;
        } else {
            literals[END + 1 + length_slot(token.len(), token.is_odd())] += 1;
            distances[distance_slot(token.dist())] += 1;
        }
        at += token.len();
    }
    for _ in 0..random.up_to(64).saturating_sub(32) {
        literals[random.below(MAX_LITERALS)] += 1;
        distances[random.below(DISTANCES)] += 1;
    }
    let mut all = Lengths {
        literals: [0; LITERALS],
        distances: [0; DISTANCES],
    };
    let limit = 9 + random.below(7);
    all.literals[..MAX_LITERALS].copy_from_slice(&lengths(any_rule(random), &literals, limit));
    all.distances = lengths(any_rule(random), &distances, limit);
    for _ in 0..random.up_to(16).saturating_sub(8) {
        let (one, other) = (random.below(MAX_LITERALS), random.below(MAX_LITERALS));
        if all.literals[one] > 0 && all.literals[other] > 0 {
            all.literals.swap(one, other);
        }
    }
    all
}

/// Runs as an encoder has them, or of any length they can be.
fn any_runs(random: &mut Random, all: &[u8]) -> Vec<Run> {
    let careless = random.one_in(2);
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < all.len() {
        let equal = all[at..].iter().take_while(|&&length| length == all[at]).count();
        let repeats = at > 0 && all[at] == all[at - 1];
        let symbols = [
            (16, repeats, 3, 6),
            (17, all[at] == 0, 3, 10),
            (18, all[at] == 0, 11, 138),
        ];
        let mut run = Run {
            symbol: all[at],
            repeat: 1,
        };
        for (symbol, fits, least, most) in symbols {
            if fits && equal >= least && !(careless && random.one_in(2)) {
                let longest = equal.min(most);
                let shorter = if careless {
                    random.below(longest - least + 1)
                } else {
                    0
                };
                run = Run {
                    symbol,
                    repeat: (longest - shorter) as u8,
                };
            }
        }
        at += usize::from(run.repeat);
        runs.push(run);
    }
    runs
}

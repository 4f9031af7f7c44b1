//! The header of a dynamic block as it is written: RFC 1951, 3.2.7.

use super::bits::{BitReader, BitWriter};
use super::codes::{
    CODE_LENGTHS, DISTANCES, END, LITERALS, Lengths, MAX_LENGTH_BITS, ORDER, canonical, is_decodable,
};

/// Literal and length symbols that a header can give lengths to.
pub const MAX_LITERALS: usize = 286;
/// The fewest.
pub const MIN_LITERALS: usize = 257;

/// One symbol of the code of code lengths: a length, or one that is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// 0 to 15 is a length; 16 the length before it, 17 and 18 zero.
    pub symbol: u8,
    /// For how many symbols in a row: 1, 3 to 6, 3 to 10, 11 to 138.
    pub repeat: u8,
}

impl Run {
    /// Least repeat of a symbol, and how many bits say what it is more.
    #[must_use]
    pub fn range(symbol: u8) -> (u8, u32) {
        match symbol {
            16 => (3, 2),
            17 => (3, 3),
            18 => (11, 7),
            _ => (1, 0),
        }
    }
}

/// A header. `lengths` are what `runs` come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// How many of `lengths.literals` are written: 257 to 286.
    pub literals: usize,
    /// How many of `lengths.distances` are written: 1 to 32.
    pub distances: usize,
    /// How many lengths of the code of code lengths are written: 4 to 19.
    pub code_lengths: usize,
    /// Lengths of the code of code lengths, by symbol.
    pub length_lengths: [u8; CODE_LENGTHS],
    pub runs: Vec<Run>,
    pub lengths: Lengths,
}

impl Header {
    /// One of which only the code lengths are known.
    #[must_use]
    pub fn of_lengths(lengths: Lengths) -> Self {
        let (literals, distances, code_lengths) = (MIN_LITERALS, 1, 4);
        let length_lengths = [0; CODE_LENGTHS];
        Self {
            literals,
            distances,
            code_lengths,
            length_lengths,
            runs: Vec::new(),
            lengths,
        }
    }

    /// Reads what follows the type of a block; nothing if it is not all there.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(reader: &mut BitReader) -> Result<Option<Self>, &'static str> {
        let Some((literals, distances, code_lengths)) = read_counts(reader) else {
            return Ok(None);
        };
        if literals > MAX_LITERALS {
            return Err("too many literal and length codes");
        }
        let mut length_lengths = [0; CODE_LENGTHS];
        for &symbol in &ORDER[..code_lengths] {
            let Some(length) = reader.take(3) else {
                return Ok(None);
            };
            length_lengths[symbol] = length as u8;
        }
        let Some(runs) = read_runs(reader, &length_lengths, literals + distances)? else {
            return Ok(None);
        };
        let lengths = expand(&runs, literals, distances)?;
        check(&lengths)?;
        Ok(Some(Self {
            literals,
            distances,
            code_lengths,
            length_lengths,
            runs,
            lengths,
        }))
    }

    pub fn write(&self, writer: &mut BitWriter) {
        writer.put((self.literals - MIN_LITERALS) as u64, 5);
        writer.put((self.distances - 1) as u64, 5);
        writer.put((self.code_lengths - 4) as u64, 4);
        for &symbol in &ORDER[..self.code_lengths] {
            writer.put(self.length_lengths[symbol].into(), 3);
        }
        let codes = canonical(&self.length_lengths);
        for run in &self.runs {
            let symbol = usize::from(run.symbol);
            writer.put(codes[symbol].into(), self.length_lengths[symbol].into());
            let (least, bits) = Run::range(run.symbol);
            writer.put((run.repeat - least).into(), bits);
        }
    }
}

fn read_counts(reader: &mut BitReader) -> Option<(usize, usize, usize)> {
    let literals = reader.take(5)? as usize + MIN_LITERALS;
    let distances = reader.take(5)? as usize + 1;
    Some((literals, distances, reader.take(4)? as usize + 4))
}

/// Reads runs until they come to `count` lengths.
fn read_runs(
    reader: &mut BitReader,
    length_lengths: &[u8; CODE_LENGTHS],
    count: usize,
) -> Result<Option<Vec<Run>>, &'static str> {
    let symbols = symbols(length_lengths)?;
    let mut runs = Vec::new();
    let mut got = 0;
    while got < count {
        reader.refill();
        let symbol = symbols[reader.peek() as usize % symbols.len()];
        let length = if symbol == NO_SYMBOL {
            1
        } else {
            length_lengths[usize::from(symbol)].into()
        };
        if reader.count() < length {
            return Ok(None);
        }
        if symbol == NO_SYMBOL {
            return Err("a code length has no such code");
        }
        reader.consume(length);
        let (least, bits) = Run::range(symbol);
        let Some(more) = reader.take(bits) else {
            return Ok(None);
        };
        let repeat = least + more as u8;
        got += usize::from(repeat);
        runs.push(Run { symbol, repeat });
    }
    Ok(Some(runs))
}

const NO_SYMBOL: u8 = u8::MAX;

/// Symbol of each 7 bits.
fn symbols(length_lengths: &[u8; CODE_LENGTHS]) -> Result<[u8; 1 << MAX_LENGTH_BITS], &'static str> {
    if !is_decodable(length_lengths) || length_lengths.iter().all(|&length| length == 0) {
        return Err("the code of code lengths is not complete");
    }
    let mut symbols = [NO_SYMBOL; 1 << MAX_LENGTH_BITS];
    for (symbol, (&length, code)) in length_lengths.iter().zip(canonical(length_lengths)).enumerate() {
        if length > 0 {
            let step = 1 << length;
            symbols
                .iter_mut()
                .skip(code.into())
                .step_by(step)
                .for_each(|place| *place = symbol as u8);
        }
    }
    Ok(symbols)
}

/// The lengths that runs come to.
///
/// # Errors
///
/// What is wrong with the runs: they must come to just as many lengths.
pub fn expand(runs: &[Run], literals: usize, distances: usize) -> Result<Lengths, &'static str> {
    let mut all = Vec::with_capacity(literals + distances);
    for run in runs {
        let length = match run.symbol {
            0..=15 => run.symbol,
            16 => *all.last().ok_or("no code length to repeat")?,
            _ => 0,
        };
        all.resize(all.len() + usize::from(run.repeat), length);
    }
    if all.len() != literals + distances {
        return Err("too many code lengths");
    }
    let mut lengths = Lengths {
        literals: [0; LITERALS],
        distances: [0; DISTANCES],
    };
    lengths.literals[..literals].copy_from_slice(&all[..literals]);
    lengths.distances[..distances].copy_from_slice(&all[literals..]);
    Ok(lengths)
}

/// That a block can be decoded by these lengths.
///
/// # Errors
///
/// What is wrong with them.
pub fn check(lengths: &Lengths) -> Result<(), &'static str> {
    if lengths.literals[END] == 0 {
        return Err("the end of the block has no code");
    }
    if !is_decodable(&lengths.literals) {
        return Err("the literal and length code is not complete");
    }
    if !is_decodable(&lengths.distances) {
        return Err("the distance code is not complete");
    }
    Ok(())
}

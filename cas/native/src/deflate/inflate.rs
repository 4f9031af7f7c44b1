//! Reads a deflate stream that comes in pieces: its blocks, their tokens, and the plain bytes.
//!
//! The parser keeps no input. It is called with what there is from some bit on, goes on as far as whole items
//! reach (the header of a block, a token, bytes of a stored block) and says why it stopped; what it has not
//! passed it wants to see again with more behind it. Any stream is taken that RFC 1951 allows; of codes that
//! are not complete, those zlib takes: no distance code, or a single code of one bit.

use super::bits::BitReader;
use super::codes::{Entry, Table};
use super::dynamic::Header;
pub use super::output::{Block, Kind, Output};
use super::{Error, Token};

/// Why a parser stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The next item is not all there.
    NeedInput,
    /// A block ended, and was not the last.
    BlockEnd,
    /// The limit of plain bytes is reached, inside a block.
    Full,
    /// The stream's last block ended. `padding` is what follows it up to the next byte: usually zero.
    StreamEnd { padding: u8 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    BetweenBlocks,
    Stored { left: usize },
    Tokens,
    Ended,
}

/// A parser of one stream.
#[derive(Debug)]
pub struct Inflater {
    state: State,
    last: bool,
    kind: Kind,
    literals: Table,
    distances: Table,
}

impl Default for Inflater {
    fn default() -> Self {
        Self::new()
    }
}

type Outcome = Result<Stop, &'static str>;

impl Inflater {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::BetweenBlocks,
            last: false,
            kind: Kind::Fixed,
            literals: Table::empty(),
            distances: Table::empty(),
        }
    }

    /// Reads on from bit `at` of `input`, which moves past all that was read, until there is a reason to stop.
    /// `limit` is of plain bytes, and may be passed by a token or a stored block.
    ///
    /// With an `Output` that has no blocks in the middle of a block, that part of it is added as one that does
    /// not begin here.
    ///
    /// # Errors
    ///
    /// What makes it no deflate stream; `at` is then before the item that does.
    pub fn read(&mut self, input: &[u8], at: &mut usize, out: &mut Output, limit: usize) -> Outcome {
        if self.state == State::Ended {
            return Ok(Stop::StreamEnd { padding: 0 });
        }
        let mut reader = BitReader::new(input, *at);
        if self.state == State::BetweenBlocks {
            if !self.read_header(&mut reader, out)? {
                return Ok(Stop::NeedInput);
            }
            *at = reader.position();
        } else if out.blocks.is_empty() {
            out.open_block(false, self.last, self.kind.clone());
        }
        let outcome = match self.state {
            State::Stored { left } => Ok(self.read_stored(input, at, out, left)),
            _ => self.read_tokens(reader, at, out, limit),
        };
        let ends = matches!(outcome, Ok(Stop::BlockEnd));
        out.stretch_block(ends);
        if !ends {
            return outcome;
        }
        self.state = if self.last {
            State::Ended
        } else {
            State::BetweenBlocks
        };
        Ok(if self.last {
            end_of_stream(input, at)
        } else {
            Stop::BlockEnd
        })
    }

    /// Whether a stored block is there in part: nothing can be cut off in it.
    #[must_use]
    pub fn is_in_stored_block(&self) -> bool {
        matches!(self.state, State::Stored { .. })
    }

    /// Reads the header of a block; false if it is not all there.
    fn read_header(&mut self, reader: &mut BitReader, out: &mut Output) -> Result<bool, &'static str> {
        let Some(bits) = reader.take(3) else {
            return Ok(false);
        };
        let mut state = State::Tokens;
        let kind = match bits >> 1 {
            0 => {
                let Some((padding, size)) = read_stored_header(reader)? else {
                    return Ok(false);
                };
                state = State::Stored { left: size };
                Kind::Stored { padding }
            }
            1 => Kind::Fixed,
            2 => match Header::read(reader)? {
                Some(header) => Kind::Dynamic(Box::new(header)),
                None => return Ok(false),
            },
            _ => return Err("a block of the reserved type"),
        };
        if let Some(lengths) = kind.lengths() {
            self.literals.fill_literals(&lengths.literals);
            self.distances.fill_distances(&lengths.distances);
        }
        self.last = bits & 1 != 0;
        out.open_block(true, self.last, kind.clone());
        self.kind = kind;
        self.state = state;
        Ok(true)
    }

    fn read_stored(&mut self, input: &[u8], at: &mut usize, out: &mut Output, left: usize) -> Stop {
        let there = &input[*at / 8..];
        let bytes = &there[..left.min(there.len())];
        out.push_bytes(bytes);
        *at += 8 * bytes.len();
        self.state = State::Stored {
            left: left - bytes.len(),
        };
        if left == bytes.len() {
            Stop::BlockEnd
        } else {
            Stop::NeedInput
        }
    }

    fn read_tokens(&self, mut reader: BitReader, at: &mut usize, out: &mut Output, limit: usize) -> Outcome {
        let limit = out.start().saturating_add(limit);
        let outcome = loop {
            if out.len() >= limit {
                break Ok(Stop::Full);
            }
            out.make_room();
            reader.refill();
            match self.read_token(&mut reader, out) {
                Ok(None) => {}
                Ok(Some(stop)) => break Ok(stop),
                Err(what) => break Err(what),
            }
        };
        *at = reader.position();
        outcome
    }

    /// Reads one token. Where there are too few bits those that are not there are zero: what they say is found
    /// to be longer than what is there.
    #[inline]
    fn read_token(&self, reader: &mut BitReader, out: &mut Output) -> Result<Option<Stop>, &'static str> {
        let bits = reader.peek();
        let entry = self.literals.find(bits);
        if entry.total() > reader.count() {
            return Ok(Some(Stop::NeedInput));
        }
        match entry.kind() {
            Entry::LITERAL => {
                reader.consume(entry.total());
                out.push_literal(entry.literal());
                return Ok(None);
            }
            Entry::BASE => {}
            Entry::END => {
                reader.consume(entry.total());
                return Ok(Some(Stop::BlockEnd));
            }
            _ => return no_code(reader, "bits that are no literal or length code"),
        }
        let rest = bits >> entry.total();
        let distance = self.distances.find(rest);
        let total = entry.total() + distance.total();
        if total > reader.count() {
            return Ok(Some(Stop::NeedInput));
        }
        if distance.kind() != Entry::BASE {
            return no_code(reader, "bits that are no distance code");
        }
        let (len, dist) = (entry.with_extra(bits), distance.with_extra(rest));
        if dist > out.len() {
            return Err("a match that reaches back before the start");
        }
        reader.consume(total);
        let is_odd = len == Token::MAX_LEN && entry.base() != Token::MAX_LEN;
        out.push_match(if is_odd {
            Token::odd_258(dist)
        } else {
            Token::matched(len, dist)
        });
        Ok(None)
    }
}

/// An error, unless bits that are yet to come may change it.
#[cold]
fn no_code(reader: &BitReader, what: &'static str) -> Result<Option<Stop>, &'static str> {
    if reader.count() < 48 {
        Ok(Some(Stop::NeedInput))
    } else {
        Err(what)
    }
}

fn read_stored_header(reader: &mut BitReader) -> Result<Option<(u8, usize)>, &'static str> {
    let bits = reader.position().wrapping_neg() % 8;
    let fields = (|| Some((reader.take(bits as u32)?, reader.take(16)?, reader.take(16)?)))();
    match fields {
        None => Ok(None),
        Some((padding, size, inverse)) if size ^ inverse == 0xFFFF => {
            Ok(Some((padding as u8, size as usize)))
        }
        Some(_) => Err("the length of a stored block is not confirmed"),
    }
}

fn end_of_stream(input: &[u8], at: &mut usize) -> Stop {
    let mut reader = BitReader::new(input, *at);
    let bits = at.wrapping_neg() % 8;
    *at += bits;
    Stop::StreamEnd {
        padding: reader.take(bits as u32).unwrap_or(0) as u8,
    }
}

/// A whole stream.
#[derive(Debug)]
pub struct Whole {
    pub plain: Vec<u8>,
    pub tokens: Vec<Token>,
    pub blocks: Vec<Block>,
    /// Bytes of the stream; what follows is not part of it.
    pub size: usize,
    /// Bits after its last block.
    pub padding: u8,
}

/// Reads a stream that is in memory, whatever comes out of it: for data that is trusted.
///
/// # Errors
///
/// `Error::Stream` if it is no deflate stream, or not all of it.
pub fn tokens(compressed: &[u8]) -> Result<Whole, Error> {
    let mut inflater = Inflater::new();
    let mut out = Output::new(&[], 4 * compressed.len());
    let mut at = 0;
    loop {
        let stop = inflater.read(compressed, &mut at, &mut out, usize::MAX);
        let bit = at as u64;
        match stop.map_err(|what| Error::Stream { what, bit })? {
            Stop::BlockEnd => {}
            Stop::StreamEnd { padding } => {
                let (tokens, blocks) = (std::mem::take(&mut out.tokens), std::mem::take(&mut out.blocks));
                return Ok(Whole {
                    plain: out.into_data(),
                    tokens,
                    blocks,
                    size: at / 8,
                    padding,
                });
            }
            Stop::NeedInput | Stop::Full => {
                return Err(Error::Stream {
                    what: "it is not all there",
                    bit,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Inflater, Kind, Output, Stop, tokens};
    use crate::deflate::bits::BitWriter;
    use crate::deflate::{Error, Token};

    fn stored(writer: &mut BitWriter, last: bool, padding: u64, bytes: &[u8]) {
        writer.put(last.into(), 3);
        let bits = writer.position().wrapping_neg() % 8;
        writer.put(padding & ((1 << bits) - 1), bits as u32);
        writer.put(bytes.len() as u64, 16);
        writer.put(0xFFFF ^ bytes.len() as u64, 16);
        writer.put_bytes(bytes);
    }

    /// Stored, empty, and fixed blocks, matches of both kinds of 258, odd padding.
    fn sample() -> Vec<u8> {
        let mut writer = BitWriter::new(0);
        stored(&mut writer, false, 0b10101, b"ab");
        stored(&mut writer, false, 0, b"");
        writer.put(0b010, 3);
        writer.put(0b1000_1110, 8); // 'A' is 0x71 from the highest bit down
        writer.put(0b1010_0011, 8); // 285: 258 bytes
        writer.put(0b00000, 5);
        writer.put(0b0010_0011, 8); // 284 with 31
        writer.put(31, 5);
        writer.put(0b01000, 5); // 3 back
        writer.put(0, 7);
        stored(&mut writer, true, 0, b"");
        writer.finish().0
    }

    #[test]
    fn all_kinds_of_blocks_and_tokens_are_read() {
        let mut bytes = sample();
        let size = bytes.len();
        bytes.extend(b"behind");
        let whole = tokens(&bytes).unwrap();
        assert_eq!((size, 0), (whole.size, whole.padding));
        assert_eq!([&b"ab"[..], &[b'A'; 517]].concat(), whole.plain);
        assert_eq!(
            [Token::LITERAL, Token::matched(258, 1), Token::odd_258(3)],
            whole.tokens[..]
        );
        let kinds: Vec<_> = whole.blocks.iter().map(|block| block.kind.clone()).collect();
        let stored = |padding| Kind::Stored { padding };
        assert_eq!([stored(0b10101), stored(0), Kind::Fixed, stored(0)], kinds[..]);
        assert!(whole.blocks.iter().all(|block| block.begins && block.ends));
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let bytes = sample();
        for limit in [usize::MAX, 1, 300] {
            let mut inflater = Inflater::new();
            let mut out = Output::new(b"", 0);
            let (mut at, mut size) = (0, 0);
            loop {
                match inflater.read(&bytes[..size], &mut at, &mut out, limit).unwrap() {
                    Stop::NeedInput => size += 1,
                    Stop::StreamEnd { padding } => break assert_eq!(0, padding),
                    Stop::BlockEnd => {}
                    Stop::Full => out = Output::new(out.window(), 0),
                }
            }
            assert_eq!(8 * bytes.len(), at);
            assert_eq!(bytes.len(), size);
            assert!(out.data().ends_with(&[b'A'; 259]));
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let mut not_confirmed = sample();
        not_confirmed[3] ^= 4;
        let cases: [(&[u8], &str); 7] = [
            (&[0b111], "a block of the reserved type"),
            (&not_confirmed, "the length of a stored block is not confirmed"),
            (&[], "it is not all there"),
            (&sample()[..20], "it is not all there"),
            (
                &[0b0000_0011, 0b10, 0, 0, 0, 0, 0, 0],
                "a match that reaches back before the start",
            ),
            (
                &[0b0001_1011, 0b11, 0, 0, 0, 0, 0, 0],
                "bits that are no literal or length code",
            ),
            (
                &[0b1111_0101, 0, 0, 0, 0, 0, 0, 0],
                "too many literal and length codes",
            ),
        ];
        for (bytes, expected) in cases {
            let Err(Error::Stream { what, .. }) = tokens(bytes) else {
                panic!("{expected}: taken")
            };
            assert_eq!(expected, what);
        }
        let text = tokens(&[0b111]).unwrap_err().to_string();
        assert!(text.ends_with("of the reserved type at byte 0, bit 0"), "{text}");
    }
}

//! What is read out of a stream: plain bytes behind their history, tokens, blocks.

use std::ops::Range;

use super::codes::{Lengths, fixed_lengths};
use super::dynamic::Header;
use super::{Token, WINDOW};

/// Type of a block, and what is in its header besides that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `padding` are the bits that are passed over to get to a byte: usually zero.
    Stored {
        padding: u8,
    },
    Fixed,
    Dynamic(Box<Header>),
}

impl Kind {
    /// Code lengths of the block; none of a stored one.
    #[must_use]
    pub fn lengths(&self) -> Option<Lengths> {
        match self {
            Self::Stored { .. } => None,
            Self::Fixed => Some(fixed_lengths()),
            Self::Dynamic(header) => Some(header.lengths.clone()),
        }
    }
}

/// A block, or the part of one that lies in a span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Whether it starts here; if not, it goes on from the span before.
    pub begins: bool,
    /// Whether its end is here too.
    pub ends: bool,
    /// Whether it is the last of the stream.
    pub last: bool,
    pub kind: Kind,
    /// Its tokens in `Output::tokens`, none for a stored block.
    pub tokens: Range<usize>,
    /// Its plain bytes in `Output::data`.
    pub plain: Range<usize>,
}

/// What a parser has read.
#[derive(Debug)]
pub struct Output {
    /// History, then plain bytes, up to `len`; behind that is room for more.
    data: Vec<u8>,
    len: usize,
    start: usize,
    pub tokens: Vec<Token>,
    pub blocks: Vec<Block>,
}

/// Room behind the plain bytes for the longest match and what a copy by sixteens writes too much.
const ROOM: usize = Token::MAX_LEN + 16;

impl Output {
    /// Nothing read yet, after `history`.
    #[must_use]
    pub fn new(history: &[u8], capacity: usize) -> Self {
        let mut data = vec![0; history.len() + capacity + ROOM];
        data[..history.len()].copy_from_slice(history);
        let (len, start) = (history.len(), history.len());
        Self {
            data,
            len,
            start,
            tokens: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// History and plain bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data[..self.len]
    }

    /// The same, without a copy.
    #[must_use]
    pub fn into_data(mut self) -> Vec<u8> {
        self.data.truncate(self.len);
        self.data
    }

    /// Where history ends and plain bytes begin.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Plain bytes so far, without history.
    #[must_use]
    pub fn plain_size(&self) -> usize {
        self.len - self.start
    }

    /// The last bytes, as many as a match can reach.
    #[must_use]
    pub fn window(&self) -> &[u8] {
        &self.data[self.len.saturating_sub(WINDOW)..self.len]
    }

    /// History and plain bytes, counted.
    #[inline]
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes room for another token.
    #[inline]
    pub fn make_room(&mut self) {
        if self.data.len() - self.len < ROOM {
            self.grow(ROOM);
        }
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let more = count.max(self.len / 2);
        self.data.resize(self.len + more, 0);
    }

    /// Adds bytes of a stored block.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if self.data.len() - self.len < bytes.len() {
            self.grow(bytes.len());
        }
        self.data[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Adds a literal, for which there is room.
    #[inline]
    pub fn push_literal(&mut self, byte: u8) {
        self.data[self.len] = byte;
        self.len += 1;
        self.tokens.push(Token::LITERAL);
    }

    /// Adds a match, whose distance was checked and for which there is room.
    #[inline]
    pub fn push_match(&mut self, token: Token) {
        let (len, dist, at) = (token.len(), token.dist(), self.len);
        if dist >= 16 {
            for offset in (0..len).step_by(16) {
                let from = at + offset - dist;
                self.data.copy_within(from..from + 16, at + offset);
            }
        } else if dist == 1 {
            let byte = self.data[at - 1];
            self.data[at..at + len].fill(byte);
        } else {
            for to in at..at + len {
                self.data[to] = self.data[to - dist];
            }
        }
        self.len += len;
        self.tokens.push(token);
    }

    /// A block, or what of it lies here, begins with what comes next.
    pub fn open_block(&mut self, begins: bool, last: bool, kind: Kind) {
        let (tokens, plain) = (self.tokens.len(), self.len);
        let (tokens, plain) = (tokens..tokens, plain..plain);
        self.blocks.push(Block {
            begins,
            ends: false,
            last,
            kind,
            tokens,
            plain,
        });
    }

    /// The block that was opened last reaches to here.
    pub fn stretch_block(&mut self, ends: bool) {
        if let Some(block) = self.blocks.last_mut() {
            block.ends = ends;
            block.tokens.end = self.tokens.len();
            block.plain.end = self.len;
        }
    }
}

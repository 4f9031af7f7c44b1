//! Coding of what blocks there are: their kinds, how far each reaches, what pads them.
//!
//! Encoders end a block when they have so many tokens, or so many plain bytes, so that a block often is as
//! long as the one before it in one of these. Of a block that reaches to the end of the span no length is
//! told, only whether it ends there. An explicit length is of tokens, or of plain bytes where an expert has to
//! know where its block ends.

use super::Error;
use super::coder::{Coder, Counter, Number, Tree, code_raw};
use super::inflate::{Block, Kind};

/// Blocks in a span, at most.
pub const MAX_BLOCKS: usize = 4096;

/// Plain bytes in a stored block, at most.
const MAX_STORED: u32 = 0xFFFF;

/// What comes first of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Whether it is the last of the stream.
    pub last: bool,
    pub kind: StartKind,
}

/// Type of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartKind {
    Stored,
    Fixed,
    Dynamic,
}

impl Start {
    #[must_use]
    pub fn of(block: &Block) -> Self {
        let kind = match block.kind {
            Kind::Stored { .. } => StartKind::Stored,
            Kind::Fixed => StartKind::Fixed,
            Kind::Dynamic(_) => StartKind::Dynamic,
        };
        Self {
            last: block.last,
            kind,
        }
    }
}

/// How far a block reaches that is not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// As many tokens.
    Tokens(u32),
    /// As many plain bytes.
    Plain(u32),
    /// To the end of the span, where it ends or goes on in the next.
    Rest { ends: bool },
}

/// Codes blocks of one span.
#[derive(Debug)]
pub struct BlockCoder {
    by_plain: bool,
    is_last: Counter,
    /// By the kind of the block before.
    kind: [Tree; 4],
    last_kind: usize,
    stored: Number,
    same_stored: Counter,
    last_stored: u32,
    has_padding: Counter,
    /// By the mode before.
    mode: [Tree; 5],
    last_mode: usize,
    size: Number,
    last_tokens: u32,
    last_plain: u32,
    ends: Counter,
    is_more: Counter,
}

const SAME_TOKENS: usize = 0;
const SAME_PLAIN: usize = 1;
const EXPLICIT: usize = 2;
const REST: usize = 3;

impl BlockCoder {
    /// `by_plain` says which length is told.
    #[must_use]
    pub fn new(by_plain: bool) -> Self {
        Self {
            by_plain,
            is_last: Counter::biased(3000, 2),
            kind: [(); 4].map(|()| Tree::new(2)),
            last_kind: 3,
            stored: Number::new(),
            same_stored: Counter::new(),
            last_stored: 0,
            has_padding: Counter::biased(3000, 2),
            mode: [(); 5].map(|()| Tree::new(2)),
            last_mode: 4,
            size: Number::new(),
            last_tokens: 0,
            last_plain: 0,
            ends: Counter::biased(60_000, 1),
            is_more: Counter::biased(16_000, 1),
        }
    }

    /// # Errors
    ///
    /// `Error::Side` if the kind is the reserved one.
    pub fn start<C: Coder>(&mut self, coder: &mut C, start: Start) -> Result<Start, Error> {
        let last = self.is_last.code(coder, start.last);
        let kind = self.kind[self.last_kind].code(coder, start.kind as usize);
        self.last_kind = kind;
        let kind = match kind {
            0 => StartKind::Stored,
            1 => StartKind::Fixed,
            2 => StartKind::Dynamic,
            _ => return Err(Error::Side("a block of the reserved type")),
        };
        Ok(Start { last, kind })
    }

    /// Codes the plain size of a stored block.
    ///
    /// # Errors
    ///
    /// `Error::Side` if it is over what there is room for.
    pub fn stored<C: Coder>(&mut self, coder: &mut C, size: u32, left: usize) -> Result<u32, Error> {
        let mut size = size;
        if self.same_stored.code(coder, size == self.last_stored) {
            size = self.last_stored;
        } else {
            size = self.stored.code(coder, size, MAX_STORED)?;
        }
        self.last_stored = size;
        if size as usize <= left {
            Ok(size)
        } else {
            Err(Error::Side("a block passes the span's end"))
        }
    }

    /// Codes bits that nothing is made of, nearly always zeros; fewer than 8.
    pub fn padding<C: Coder>(&mut self, coder: &mut C, padding: u8) -> u8 {
        if self.has_padding.code(coder, padding != 0) {
            code_raw(coder, padding.into(), 7) as u8
        } else {
            0
        }
    }

    /// How far a block reaches, told in the shortest way. `size` is that of all of `data`.
    #[must_use]
    pub fn extent_of(&self, block: &Block, size: usize) -> Extent {
        if block.plain.end == size {
            return Extent::Rest { ends: block.ends };
        }
        let (tokens, plain) = (block.tokens.len() as u32, block.plain.len() as u32);
        if self.by_plain || (plain == self.last_plain && tokens != self.last_tokens) {
            return Extent::Plain(plain);
        }
        Extent::Tokens(tokens)
    }

    /// # Errors
    ///
    /// `Error::Side` if what is read is over the `left` plain bytes of the span.
    pub fn extent<C: Coder>(&mut self, coder: &mut C, extent: Extent, left: usize) -> Result<Extent, Error> {
        let mode = self.mode[self.last_mode].code(coder, self.mode_of(extent));
        self.last_mode = mode;
        let size = match extent {
            Extent::Tokens(size) | Extent::Plain(size) => size,
            Extent::Rest { .. } => 0,
        };
        let extent = match mode {
            SAME_TOKENS if !self.by_plain => Extent::Tokens(self.last_tokens),
            SAME_PLAIN => Extent::Plain(self.last_plain),
            EXPLICIT if self.by_plain => Extent::Plain(self.size.code(coder, size, u32::MAX)?),
            EXPLICIT => Extent::Tokens(self.size.code(coder, size, u32::MAX)?),
            REST => {
                return Ok(Extent::Rest {
                    ends: self.ends.code(coder, ends(extent)),
                });
            }
            _ => return Err(Error::Side("a length that is not told in tokens")),
        };
        match extent {
            Extent::Tokens(size) | Extent::Plain(size) if size as usize > left => {
                Err(Error::Side("a block passes the span's end"))
            }
            _ => Ok(extent),
        }
    }

    fn mode_of(&self, extent: Extent) -> usize {
        match extent {
            Extent::Rest { .. } => REST,
            Extent::Tokens(size) if size == self.last_tokens => SAME_TOKENS,
            Extent::Plain(size) if size == self.last_plain => SAME_PLAIN,
            _ => EXPLICIT,
        }
    }

    /// What the block came to, when its tokens are known.
    pub fn ended(&mut self, tokens: usize, plain: usize) {
        self.last_tokens = tokens as u32;
        self.last_plain = plain as u32;
    }

    /// Whether another block follows, when all plain bytes are there.
    pub fn more<C: Coder>(&mut self, coder: &mut C, is_more: bool) -> bool {
        self.is_more.code(coder, is_more)
    }
}

fn ends(extent: Extent) -> bool {
    matches!(extent, Extent::Rest { ends: true })
}

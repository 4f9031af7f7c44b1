//! The choices of a span in the order in which they are coded.
//!
//! ```text
//! block:  last? kind, then
//!         stored: plain size, padding
//!         else:   extent, tokens, the header if it is dynamic
//!         whether another block follows, where all plain bytes are there and that is not said by anything else
//! span:   blocks, padding after the stream's last block
//! ```
//!
//! Encoder and decoder walk the same way. The encoder has what is there at hand; the decoder has blanks in its
//! place, and writes the bits of each block as soon as it knows it.

use super::bits::BitWriter;
use super::coder::{Coder, Decoder};
use super::codes::fixed_lengths;
use super::config::Config;
use super::dynamic::Header;
use super::extent::{BlockCoder, Extent, MAX_BLOCKS, Start, StartKind};
use super::frequencies::Frequencies;
use super::header::{HeaderCoder, Plan};
use super::hits::Record;
use super::inflate::{Block, Kind};
use super::tokens::TokenCoder;
use super::write::{self, TokenWriter};
use super::{Error, Token};

/// What an encoder is given. `tokens` are in `blocks` by their places.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub tokens: &'a [Token],
    pub blocks: &'a [Block],
    /// Padding after the stream's last block.
    pub end: Option<u8>,
}

/// The state of coding a span.
#[derive(Debug)]
pub struct Walk<'a> {
    data: &'a [u8],
    at: usize,
    /// Whether an empty stored block came just before.
    sync: bool,
    by_plain: bool,
    blocks: BlockCoder,
    headers: HeaderCoder,
    tokens: TokenCoder,
}

impl<'a> Walk<'a> {
    /// Of `data`, what is from `start` on belongs to the span. For `by_plain` see `BlockCoder`, for `maybe_record`
    /// `TokenCoder::new`.
    #[must_use]
    pub fn new(
        config: &Config,
        (data, start): (&'a [u8], usize),
        by_plain: bool,
        maybe_record: Option<Record>,
    ) -> Self {
        Self {
            data,
            at: start,
            sync: false,
            by_plain,
            blocks: BlockCoder::new(by_plain),
            headers: HeaderCoder::new(),
            tokens: TokenCoder::new(config, data, start, maybe_record),
        }
    }

    /// Codes what is given.
    ///
    /// # Errors
    ///
    /// `Error::Side` if that is nothing that a parser gives.
    pub fn encode<C: Coder>(&mut self, coder: &mut C, given: &Given) -> Result<(), Error> {
        for (number, block) in given.blocks.iter().enumerate() {
            let start = self.blocks.start(coder, Start::of(block))?;
            let ends = match &block.kind {
                Kind::Stored { padding } => {
                    self.stored(coder, block.plain.len() as u32, *padding)?;
                    true
                }
                kind => self.encode_compressed(coder, block, kind, &given.tokens[block.tokens.clone()])?,
            };
            let is_more = number + 1 < given.blocks.len();
            self.is_done(coder, start, ends, !is_more);
        }
        if let Some(padding) = given.end {
            self.blocks.padding(coder, padding);
        }
        Ok(())
    }

    fn encode_compressed<C: Coder>(
        &mut self,
        coder: &mut C,
        block: &Block,
        kind: &Kind,
        tokens: &[Token],
    ) -> Result<bool, Error> {
        let from = self.at;
        let extent = self.blocks.extent_of(block, self.data.len());
        self.blocks.extent(coder, extent, self.data.len() - from)?;
        let end = self.begin_tokens(block.plain.end);
        let mut rest = tokens;
        loop {
            let (count, at) = self.tokens.pass(self.at, rest);
            self.at = at;
            let Some((&token, others)) = rest[count..].split_first() else {
                break;
            };
            self.tokens.code(coder, self.data, self.at, end, token)?;
            self.at += token.len();
            rest = others;
        }
        self.blocks.ended(tokens.len(), self.at - from);
        if let Kind::Dynamic(header) = kind {
            let frequencies = Frequencies::count(self.data, from, tokens);
            let plan = self.headers.plan(&frequencies, header);
            self.headers
                .code(coder, &frequencies, header, plan, block.begins)?;
        }
        Ok(block.ends)
    }

    /// Reads the choices and writes the bits. `goes_on` is whether the first block began before, `is_last`
    /// whether the stream ends here.
    ///
    /// # Errors
    ///
    /// `Error::Side` if what is read is nothing that an encoder wrote.
    pub fn decode(
        &mut self,
        coder: &mut Decoder,
        writer: &mut BitWriter,
        goes_on: bool,
        is_last: bool,
    ) -> Result<(), Error> {
        let mut begins = !goes_on;
        for _ in 0..MAX_BLOCKS {
            let start = self.blocks.start(
                coder,
                Start {
                    last: false,
                    kind: StartKind::Stored,
                },
            )?;
            let ends = match start.kind {
                StartKind::Stored if !begins => return Err(Error::Side("a stored block goes on")),
                StartKind::Stored => {
                    self.decode_stored(coder, writer, start.last)?;
                    true
                }
                _ => self.decode_compressed(coder, writer, start, begins)?,
            };
            begins = true;
            if coder.exhausted() {
                return Err(Error::Side("it is cut short"));
            }
            if self.is_done(coder, start, ends, false) {
                return self.decode_end(coder, writer, start.last && ends, is_last);
            }
        }
        Err(Error::Side("there are too many blocks"))
    }

    fn decode_stored(
        &mut self,
        coder: &mut Decoder,
        writer: &mut BitWriter,
        last: bool,
    ) -> Result<(), Error> {
        let from = self.at;
        let padding = self.stored(coder, 0, 0)?;
        write::start(writer, last, &Kind::Stored { padding });
        write::padding(writer, padding)?;
        write::stored(writer, &self.data[from..self.at]);
        Ok(())
    }

    fn decode_compressed(
        &mut self,
        coder: &mut Decoder,
        writer: &mut BitWriter,
        start: Start,
        begins: bool,
    ) -> Result<bool, Error> {
        let from = self.at;
        let (tokens, ends) = self.decode_tokens(coder)?;
        self.blocks.ended(tokens.len(), self.at - from);
        let mut kind = Kind::Fixed;
        if start.kind == StartKind::Dynamic {
            let frequencies = Frequencies::count(self.data, from, &tokens);
            let blank = Header::of_lengths(fixed_lengths());
            let header = self
                .headers
                .code(coder, &frequencies, &blank, Plan::default(), begins)?;
            kind = Kind::Dynamic(Box::new(header));
        }
        if begins {
            write::start(writer, start.last, &kind);
        }
        let token_writer = TokenWriter::new(&kind.lengths().unwrap_or_else(fixed_lengths));
        token_writer.tokens(writer, self.data, from, &tokens)?;
        if ends {
            token_writer.end(writer);
        }
        Ok(ends)
    }

    fn decode_tokens(&mut self, coder: &mut Decoder) -> Result<(Vec<Token>, bool), Error> {
        let blank = Extent::Rest { ends: false };
        let extent = self.blocks.extent(coder, blank, self.data.len() - self.at)?;
        let (count, stop) = match extent {
            Extent::Tokens(count) => (count as usize, usize::MAX),
            Extent::Plain(size) => (usize::MAX, self.at + size as usize),
            Extent::Rest { .. } => (usize::MAX, self.data.len()),
        };
        let end = self.begin_tokens(stop);
        let mut tokens = Vec::new();
        while tokens.len() < count && self.at < stop {
            let until = (stop.min(end), count);
            self.at = self.tokens.lead(self.data, self.at, until, &mut tokens);
            if tokens.len() == count || self.at >= stop {
                break;
            }
            let token = self.tokens.code(coder, self.data, self.at, end, Token::LITERAL)?;
            self.at += token.len();
            tokens.push(token);
            if coder.exhausted() {
                return Err(Error::Side("it is cut short"));
            }
        }
        if self.at > stop {
            return Err(Error::Side("a block has more plain bytes than it was to have"));
        }
        Ok((tokens, extent != blank))
    }

    /// Begins tokens that reach to `stop`. Gives where they end as far as that is known beforehand.
    fn begin_tokens(&mut self, stop: usize) -> usize {
        let end = if self.by_plain { stop } else { self.data.len() };
        self.tokens
            .block(self.data, self.at, end, std::mem::take(&mut self.sync));
        end
    }

    fn decode_end(
        &mut self,
        coder: &mut Decoder,
        writer: &mut BitWriter,
        ends: bool,
        is_last: bool,
    ) -> Result<(), Error> {
        if ends != is_last || self.at < self.data.len() {
            return Err(Error::Side("the stream ends in the wrong place"));
        }
        if is_last {
            let padding = self.blocks.padding(coder, 0);
            write::padding(writer, padding)?;
        }
        Ok(())
    }

    /// Codes a stored block's size and padding, and passes its bytes.
    fn stored<C: Coder>(&mut self, coder: &mut C, size: u32, padding: u8) -> Result<u8, Error> {
        let size = self.blocks.stored(coder, size, self.data.len() - self.at)?;
        let from = self.at;
        self.at += size as usize;
        self.sync = size == 0;
        self.tokens.stored(self.data, from, self.at);
        Ok(self.blocks.padding(coder, padding))
    }

    /// Whether a block is the span's last, which is coded where nothing else says it.
    fn is_done<C: Coder>(&mut self, coder: &mut C, start: Start, ends: bool, is_done: bool) -> bool {
        if !ends || start.last {
            return true;
        }
        self.at == self.data.len() && !self.blocks.more(coder, !is_done)
    }
}

//! A span: plain bytes, and all there is to know of how they were compressed.
//!
//! Its side information begins with a version and a byte of flags. Where nothing is foretold well enough to
//! be worth it, the bits of the span follow as they are; else what the encoder is like (`config`), and what
//! the coder wrote (`walk`).

use super::bits::BitWriter;
use super::coder::{Decoder, Encoder};
use super::config::Config;
use super::detect::another;
use super::expert::AnyExpert;
use super::hits::Record;
use super::inflate::{Block, Kind, Output};
use super::walk::{Given, Walk};
use super::{Error, Token, WINDOW};

/// Of side information. Anything that changes what a decoder makes of it is another version.
pub const VERSION: u8 = 1;

/// Plain bytes of a span, at most.
pub const MAX_PLAIN: usize = 9 << 20;

/// Flags: bits of the first byte that belong to the span before.
const PHASE: u8 = 0x07;
/// The bits themselves follow; how many of the last byte are used is in the upper four bits.
const AS_IT_IS: u8 = 0x08;
/// Else: whether the first block goes on from the span before.
const GOES_ON: u8 = 0x10;
/// Else: whether the stream ends with the span.
const LAST: u8 = 0x20;
/// Else: whether it is told in runs where the expert is right.
const IN_RUNS: u8 = 0x40;
/// Else: whether lengths of blocks are told in plain bytes.
const BY_PLAIN: u8 = 0x80;

/// A span is done badly whose side information is more than so many bytes and one part in so many.
const FREE: usize = 24;
const BADLY: usize = 200;

/// One block in so many is an empty stored one where an encoder was told to flush.
const FLUSHES: usize = 8;

/// A span of a stream, immutable.
#[derive(Debug)]
pub struct Span {
    pub(super) data: Vec<u8>,
    pub(super) start: usize,
    pub(super) tokens: Vec<Token>,
    pub(super) blocks: Vec<Block>,
    pub(super) bits: Bits,
    /// What follows the stream's last block up to the next byte, if that is in the span.
    pub(super) end: Option<u8>,
}

/// Bits that begin and end anywhere in bytes. Those that belong to others are zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bits {
    pub bytes: Vec<u8>,
    /// How many of the first byte belong to what is before.
    pub phase: u32,
    /// How many of the last byte are used: 0 for all of them.
    pub used: u32,
}

impl Bits {
    /// The bits from `from` to `to` of `bytes`.
    #[must_use]
    pub fn cut(bytes: &[u8], from: usize, to: usize) -> Self {
        let mut cut = bytes[from / 8..to.div_ceil(8)].to_vec();
        let (phase, used) = ((from % 8) as u32, (to % 8) as u32);
        if let (Some(last), 1..) = (cut.last_mut(), used) {
            *last &= (1 << used) - 1;
        }
        if let Some(first) = cut.first_mut() {
            *first &= 0xFF << phase;
        }
        Self {
            bytes: cut,
            phase,
            used,
        }
    }

    #[must_use]
    pub fn count(&self) -> usize {
        let unused = if self.used == 0 { 0 } else { 8 - self.used as usize };
        (8 * self.bytes.len()).saturating_sub(self.phase as usize + unused)
    }
}

impl Span {
    pub(super) fn new(mut output: Output, bits: Bits, end: Option<u8>) -> Self {
        let (tokens, blocks) = (
            std::mem::take(&mut output.tokens),
            std::mem::take(&mut output.blocks),
        );
        let start = output.start();
        Self {
            data: output.into_data(),
            start,
            tokens,
            blocks,
            bits,
            end,
        }
    }

    #[must_use]
    pub fn plain(&self) -> &[u8] {
        &self.data[self.start..]
    }

    #[must_use]
    pub fn history(&self) -> &[u8] {
        &self.data[..self.start]
    }

    /// The compressed bits.
    #[must_use]
    pub fn bits(&self) -> &Bits {
        &self.bits
    }

    /// Whether the stream ends with it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.end.is_some()
    }

    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Side information, from which the span's bits were rebuilt. It is at most two bytes longer than they are.
    ///
    /// Where `config` does badly, an encoder that is known better is looked for; `config_of` tells which it was.
    #[must_use]
    pub fn analyse(&self, config: &Config) -> Vec<u8> {
        let mut best = self.as_it_is();
        let mut is_bad_with = |side: Result<Vec<u8>, Error>| {
            best = side
                .into_iter()
                .chain([std::mem::take(&mut best)])
                .min_by_key(Vec::len)
                .unwrap_or_default();
            best.len() > FREE + self.bits.bytes.len() / BADLY
        };
        if is_bad_with(self.encode(config)) {
            if let Some(other) = another(self, config) {
                is_bad_with(self.encode(&other));
            }
        }
        if self.is_proved_by(&best) {
            best
        } else {
            self.as_it_is()
        }
    }

    fn is_proved_by(&self, side: &[u8]) -> bool {
        rebuild_in((&self.data, self.start), side).as_ref() == Ok(&self.bits)
    }

    fn as_it_is(&self) -> Vec<u8> {
        let flags = self.bits.phase as u8 | AS_IT_IS | (self.bits.used as u8) << 4;
        [&[VERSION, flags][..], &self.bits.bytes].concat()
    }

    /// Whether its encoder was told time and again to write all that it had. No match goes beyond that, so an
    /// expert does better if it knows where that was.
    fn is_flushed(&self) -> bool {
        let is_sync = |block: &&Block| matches!(block.kind, Kind::Stored { .. }) && block.plain.is_empty();
        FLUSHES * self.blocks.iter().filter(is_sync).count() > self.blocks.len()
    }

    pub(super) fn encode(&self, config: &Config) -> Result<Vec<u8>, Error> {
        let mut flags = self.bits.phase as u8;
        flags |= if self.blocks.first().is_some_and(|block| !block.begins) {
            GOES_ON
        } else {
            0
        };
        flags |= if self.is_last() { LAST } else { 0 };
        let given = Given {
            tokens: &self.tokens,
            blocks: &self.blocks,
            end: self.end,
        };
        let by_plain = config.by_plain() || self.is_flushed();
        flags |= if by_plain { BY_PLAIN } else { 0 };
        let data = (&self.data[..], self.start);
        let maybe_record = config.expert.and_then(|params| {
            let expert = AnyExpert::new(&params, data.0, data.1);
            Record::of(expert, data.0, by_plain, &given)
        });
        flags |= if maybe_record.is_some() { IN_RUNS } else { 0 };
        let misses = maybe_record.as_ref().map(Record::misses);
        let config = &config.for_misses(misses);
        let mut side = vec![VERSION, flags];
        side.extend(config.encode());
        let mut encoder = Encoder::new();
        let mut walk = Walk::new(config, data, by_plain, maybe_record);
        walk.encode(&mut encoder, &given)?;
        side.extend(encoder.finish());
        Ok(side)
    }
}

/// How a span was analysed that has this side information; nothing if it holds the bits themselves.
///
/// # Errors
///
/// `Error::Side` if it is no side information.
pub fn config_of(side: &[u8]) -> Result<Option<Config>, Error> {
    let (flags, rest) = flags_of(side)?;
    if flags & AS_IT_IS != 0 {
        return Ok(None);
    }
    Config::decode(rest).map(|(config, _)| Some(config))
}

fn flags_of(side: &[u8]) -> Result<(u8, &[u8]), Error> {
    let (&[version, flags], rest) = side.split_first_chunk().ok_or(Error::Side("it is cut short"))?;
    if version != VERSION {
        return Err(Error::Side("its version is not known"));
    }
    Ok((flags, rest))
}

/// The bits of a span, from the plain bytes before it, its own, and its side information.
///
/// Of `history` the last 32 KiB count; where the span is not that far into the stream, it is all that there is.
///
/// # Errors
///
/// `Error::Side` if that is not what analysing any span of these plain bytes gives.
pub fn rebuild(history: &[u8], plain: &[u8], side: &[u8]) -> Result<Bits, Error> {
    let history = &history[history.len().saturating_sub(WINDOW)..];
    if plain.len() > MAX_PLAIN {
        return Err(TOO_LONG);
    }
    rebuild_in((&[history, plain].concat(), history.len()), side)
}

const TOO_LONG: Error = Error::Side("the span is too long");

/// The same for `data`, of which the last 32 KiB before `start` are history, and what follows the plain bytes.
fn rebuild_in((data, start): (&[u8], usize), side: &[u8]) -> Result<Bits, Error> {
    let (flags, rest) = flags_of(side)?;
    if data.len() - start > MAX_PLAIN {
        return Err(TOO_LONG);
    }
    if flags & AS_IT_IS != 0 {
        return as_it_is(flags, rest);
    }
    let (config, rest) = Config::decode(rest)?;
    if flags & IN_RUNS != 0 && config.expert.is_none() {
        return Err(Error::Side("there are runs of no expert"));
    }
    let phase = u32::from(flags & PHASE);
    let mut writer = BitWriter::new(phase);
    let mut decoder = Decoder::new(rest);
    let maybe_record = (flags & IN_RUNS != 0).then(Record::default);
    let by_plain = flags & BY_PLAIN != 0;
    let mut walk = Walk::new(&config, (data, start), by_plain, maybe_record);
    walk.decode(&mut decoder, &mut writer, flags & GOES_ON != 0, flags & LAST != 0)?;
    decoder.finish()?;
    let (bytes, used) = writer.finish();
    Ok(Bits { bytes, phase, used })
}

/// Bits that were not encoded; only those of the span are set.
fn as_it_is(flags: u8, bytes: &[u8]) -> Result<Bits, Error> {
    let (phase, used) = (u32::from(flags & PHASE), u32::from(flags >> 4));
    let to = 8 * bytes.len() - if used == 0 { 0 } else { 8 - used as usize % 8 }.min(8 * bytes.len());
    let from = phase as usize;
    if used < 8 && from < to {
        let bits = Bits::cut(bytes, from, to);
        if bits.bytes == bytes {
            return Ok(bits);
        }
    }
    Err(Error::Side(
        "bits that are kept as they are do not fit their bytes",
    ))
}

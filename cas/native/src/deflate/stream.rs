//! Cuts a deflate stream that comes in pieces into spans.
//!
//! A span ends at the first end of a block where it has as many plain bytes as wanted, or so many blocks as a
//! span may have; inside a block only when it has twice as many bytes. So the spans of a stream do not depend
//! on how it comes.

use super::Error;
use super::extent::MAX_BLOCKS;
use super::inflate::{Inflater, Output, Stop};
use super::span::{Bits, Span};

/// Plain bytes that spans may be cut after.
pub const SPAN_SIZES: std::ops::RangeInclusive<usize> = 1 << 10..=4 << 20;

/// Bytes that are taken of the input at a time, so that little more is held than the span needs.
const STEP: usize = 64 * 1024;

/// The stream so far.
#[derive(Debug)]
pub struct Splitter {
    span_size: usize,
    inflater: Inflater,
    output: Output,
    /// Compressed bytes from that in which the span begins.
    input: Vec<u8>,
    /// Bytes of the stream before those.
    passed: u64,
    /// Bit of `input` at which the span begins, and up to which it was read.
    from: usize,
    at: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Reading,
    Finished,
    Failed(Error),
}

impl Splitter {
    /// `span_size` is one of `SPAN_SIZES`.
    #[must_use]
    pub fn new(span_size: usize) -> Self {
        debug_assert!(SPAN_SIZES.contains(&span_size));
        Self {
            span_size,
            inflater: Inflater::new(),
            output: Output::new(&[], room(span_size)),
            input: Vec::new(),
            passed: 0,
            from: 0,
            at: 0,
            state: State::Reading,
        }
    }

    /// Takes the stream's next bytes, and gives the spans that are then complete.
    pub fn feed(&mut self, data: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        for piece in data.chunks(STEP) {
            match self.state {
                State::Reading => {
                    self.input.extend_from_slice(piece);
                    self.read(&mut spans);
                }
                State::Finished => self.input.extend_from_slice(piece),
                State::Failed(_) => break,
            }
        }
        spans
    }

    /// No more bytes come: the span of what is there and complete, if that has plain bytes. Called once.
    pub fn finish(&mut self) -> Option<Span> {
        let is_reading = matches!(self.state, State::Reading) && !self.inflater.is_in_stored_block();
        (is_reading && self.output.plain_size() > 0).then(|| self.cut(None))
    }

    /// Whether the end of the stream was read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished)
    }

    /// Bytes that were fed and lie behind the end of the stream.
    #[must_use]
    pub fn unused(&self) -> &[u8] {
        if self.is_finished() { &self.input } else { &[] }
    }

    /// What makes it no deflate stream.
    #[must_use]
    pub fn failed(&self) -> Option<&Error> {
        if let State::Failed(error) = &self.state {
            Some(error)
        } else {
            None
        }
    }

    /// Bits of the stream that the spans given out are of.
    #[must_use]
    pub fn position(&self) -> u64 {
        8 * self.passed + self.from as u64
    }

    /// The last 32 KiB of plain bytes of the spans given out.
    #[must_use]
    pub fn window(&self) -> &[u8] {
        &self.output.data()[..self.output.start()]
    }

    fn read(&mut self, spans: &mut Vec<Span>) {
        loop {
            match self
                .inflater
                .read(&self.input, &mut self.at, &mut self.output, 2 * self.span_size)
            {
                Ok(Stop::NeedInput) => return,
                Ok(Stop::BlockEnd) if !self.is_enough() => {}
                Ok(Stop::BlockEnd | Stop::Full) => spans.push(self.cut(None)),
                Ok(Stop::StreamEnd { padding }) => {
                    spans.push(self.cut(Some(padding)));
                    self.state = State::Finished;
                    return;
                }
                Err(what) => {
                    let bit = 8 * self.passed + self.at as u64;
                    self.state = State::Failed(Error::Stream { what, bit });
                    self.input = Vec::new();
                    return;
                }
            }
        }
    }

    fn is_enough(&self) -> bool {
        self.output.plain_size() >= self.span_size || self.output.blocks.len() >= MAX_BLOCKS
    }

    /// The span up to here; the next begins.
    fn cut(&mut self, end: Option<u8>) -> Span {
        let bits = Bits::cut(&self.input, self.from, self.at);
        let next = Output::new(
            self.output.window(),
            if end.is_some() { 0 } else { room(self.span_size) },
        );
        let output = std::mem::replace(&mut self.output, next);
        let whole = self.at / 8;
        self.input.drain(..whole);
        self.passed += whole as u64;
        self.from = self.at % 8;
        self.at = self.from;
        Span::new(output, bits, end)
    }
}

/// Plain bytes that nearly all spans are made within.
fn room(span_size: usize) -> usize {
    span_size + span_size / 8 + 64 * 1024
}

#[cfg(test)]
mod tests {
    use super::Splitter;
    use crate::deflate::Error;
    use crate::deflate::config::Config;
    use crate::deflate::expert::menu;
    use crate::deflate::inflate::tokens;
    use crate::deflate::span::rebuild;
    use crate::deflate::wild::{self, Random};

    /// Configurations of all kinds, fitting or not.
    fn config(number: usize) -> Config {
        let experts = menu();
        let expert = Some(experts[number % experts.len()]);
        match number % 4 {
            0 => Config::default(),
            1 => Config::universal(),
            2 => Config { expert, model: None },
            _ => Config {
                expert,
                ..Config::universal()
            },
        }
    }

    /// Takes a stream apart, in pieces, and puts it together again from side information; how long that was.
    fn round_trip(compressed: &[u8], span_size: usize, piece: usize, config: &Config) -> Vec<usize> {
        let mut splitter = Splitter::new(span_size);
        let mut back: Vec<u8> = Vec::new();
        let mut sizes = Vec::new();
        for piece in compressed.chunks(piece) {
            for span in splitter.feed(piece) {
                let side = span.encode(config).unwrap();
                let bits = rebuild(span.history(), span.plain(), &side).unwrap();
                assert_eq!(span.bits(), &bits);
                if bits.phase > 0 {
                    *back.last_mut().unwrap() |= bits.bytes[0];
                }
                back.extend(&bits.bytes[usize::from(bits.phase > 0)..]);
                sizes.push(side.len());
            }
        }
        assert!(splitter.is_finished());
        assert_eq!(compressed, back);
        sizes
    }

    #[test]
    fn a_stream_that_is_cut_off_has_a_last_span() {
        let mut last = 0;
        for seed in 0..8_u64 {
            let (compressed, plain) = wild::stream(seed, 6, 400);
            for size in (0..compressed.len()).step_by(1 + compressed.len() / 20) {
                let mut splitter = Splitter::new(1024);
                let mut spans = splitter.feed(&compressed[..size]);
                spans.extend(splitter.finish().inspect(|_| last += 1));
                let mut back: Vec<u8> = Vec::new();
                let mut told = 0;
                for span in &spans {
                    let side = span.encode(&config(seed as usize)).unwrap();
                    let bits = rebuild(span.history(), span.plain(), &side).unwrap();
                    if bits.phase > 0 {
                        *back.last_mut().unwrap() |= bits.bytes[0];
                    }
                    back.extend(&bits.bytes[usize::from(bits.phase > 0)..]);
                    assert_eq!(&plain[told..told + span.plain().len()], span.plain());
                    told += span.plain().len();
                }
                let whole = (splitter.position() / 8) as usize;
                assert_eq!(&compressed[..whole], &back[..whole]);
            }
        }
        assert!(last > 40, "{last}");
    }

    #[test]
    fn empty_streams() {
        for number in 0..4 {
            assert_eq!(1, round_trip(&[3, 0], 1024, 1, &config(number)).len());
            assert_eq!(
                1,
                round_trip(&[1, 0, 0, 255, 255], 1024, 5, &config(number)).len()
            );
        }
    }

    #[test]
    fn any_legal_stream_comes_back_bit_for_bit() {
        for seed in 0..60 {
            let (compressed, plain) = wild::stream(seed, 1 + seed as usize % 40, 1000);
            assert_eq!(plain, tokens(&compressed).unwrap().plain);
            let piece = 1 + (seed * seed) as usize % 5000;
            round_trip(&compressed, 1024 << (seed % 8), piece, &config(seed as usize));
        }
    }

    #[test]
    fn spans_do_not_depend_on_how_a_stream_comes() {
        let (mut compressed, _) = wild::stream(5, 60, 3000);
        let size = compressed.len();
        compressed.extend(b"behind");
        let spans = |piece: usize| {
            let mut splitter = Splitter::new(4096);
            let spans: Vec<_> = compressed
                .chunks(piece)
                .flat_map(|piece| splitter.feed(piece))
                .collect();
            assert_eq!(b"behind", splitter.unused());
            assert_eq!(8 * size as u64, splitter.position());
            spans
                .iter()
                .map(|span| (span.history().to_vec(), span.bits().clone()))
                .collect::<Vec<_>>()
        };
        let expected = spans(compressed.len());
        assert!(expected.len() > 10);
        for piece in [1, 2, 1000, 65537] {
            assert_eq!(expected, spans(piece));
        }
    }

    #[test]
    fn what_is_whole_of_a_stream_cut_short_is_given() {
        let (compressed, plain) = wild::stream(6, 60, 3000);
        let mut last = 0;
        for size in (0..compressed.len()).step_by(97) {
            let mut splitter = Splitter::new(4096);
            let spans = splitter.feed(&compressed[..size]);
            assert!(!splitter.is_finished() && splitter.failed().is_none());
            let bits: usize = spans.iter().map(|span| span.bits().count()).sum();
            assert_eq!(bits as u64, splitter.position());
            let got: Vec<u8> = spans.iter().flat_map(|span| span.plain().to_vec()).collect();
            assert!(plain.starts_with(&got) && got.len() >= last);
            assert_eq!(&got[got.len().saturating_sub(32768)..], splitter.window());
            last = got.len();
        }
        assert!(last > 0);
    }

    #[test]
    fn what_makes_it_no_stream_is_told_after_the_spans_before_it() {
        let (mut compressed, _) = wild::stream(7, 60, 3000);
        let middle = compressed.len() / 2;
        let mut random = Random::new(1);
        compressed[middle..].fill_with(|| random.below(256) as u8);
        let mut splitter = Splitter::new(4096);
        assert!(!splitter.feed(&compressed).is_empty());
        let Some(Error::Stream { bit, .. }) = splitter.failed() else {
            panic!("it did not fail")
        };
        assert!(*bit >= splitter.position());
        assert!(splitter.feed(&compressed).is_empty());
    }

    /// Nothing is made of side information that was changed or cut, or of other plain bytes, but an error or
    /// some bits; never a panic, or much time.
    #[test]
    fn hostile_side_information_is_refused_or_gives_some_bits() {
        let mut random = Random::new(1);
        for seed in 0..12 {
            let (compressed, _) = wild::stream(seed, 12, 500);
            for span in Splitter::new(2048).feed(&compressed) {
                let side = span.encode(&config(seed as usize)).unwrap();
                assert_eq!(
                    Ok(span.bits()),
                    rebuild(span.history(), span.plain(), &side).as_ref()
                );
                for size in 0..side.len().min(80) {
                    let back = rebuild(span.history(), span.plain(), &side[..size]);
                    assert_ne!(Ok(span.bits()), back.as_ref());
                }
                for _ in 0..40 {
                    let mut changed = side.clone();
                    for _ in 0..=random.below(3) {
                        let at = random.below(changed.len());
                        changed[at] ^= 1 << random.below(8);
                    }
                    let _ = rebuild(span.history(), span.plain(), &changed);
                    let fewer = random.below(span.plain().len() + 1);
                    let _ = rebuild(span.history(), &span.plain()[..fewer], &changed);
                }
                let longer = [&side[..], &[0]].concat();
                assert!(rebuild(span.history(), span.plain(), &longer).is_err());
            }
        }
    }
}

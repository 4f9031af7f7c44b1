//! How it is coded whether an expert was right.
//!
//! Where it nearly always is, the lengths of runs of right foretellings are coded, and a decoder hardly does
//! more than the expert. Where it more often is wrong, there is a flag for each token, by what was foretold and
//! how it went before. A foretelling that the expert itself doubts is in no run: it has a flag by how much it is
//! doubted. After a wrong one the expert may have others, each with a flag of its own.

use std::collections::VecDeque;

use super::coder::{Coder, Counter, Number, SLOW};
use super::expert::{AGES, AnyExpert, Expert, TIMES};
use super::inflate::Kind;
use super::walk::Given;
use super::{Error, Token};

/// What an expert made of a span, found out before it is coded.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Record {
    /// Runs of right foretellings that were not doubted, the last one at the end.
    runs: VecDeque<u32>,
    doubted: VecDeque<Doubted>,
    /// For each wrong one how often it was wrong again, and whether it then was right.
    retries: VecDeque<(usize, bool)>,
}

/// A foretelling that was doubted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Doubted {
    pos: usize,
    doubt: usize,
    is_right: bool,
}

/// Runs are told as long as an expert is wrong less than once in so many tokens, after the first few times.
const RARELY: usize = 200;
const ALLOWANCE: usize = 512;

impl Record {
    /// What `expert` makes of `given`; nothing if it is wrong too often for that to be the shortest way to tell it.
    #[must_use]
    pub fn of(expert: AnyExpert, data: &[u8], by_plain: bool, given: &Given) -> Option<Self> {
        let mut recorder = Recorder::new(expert, data);
        let mut sync = false;
        for block in given.blocks {
            let at = block.plain.start;
            if let Kind::Stored { .. } = block.kind {
                sync = block.plain.is_empty();
                if !sync {
                    recorder.expert.stored(data, at, block.plain.end);
                }
                continue;
            }
            let end = if by_plain { block.plain.end } else { data.len() };
            recorder.expert.block(data, at, end, std::mem::take(&mut sync));
            if !recorder.tokens(at, &given.tokens[block.tokens.clone()]) {
                return None;
            }
        }
        recorder.record.runs.push_back(recorder.run);
        Some(recorder.record)
    }

    /// Tokens that were not foretold at all.
    #[must_use]
    pub fn misses(&self) -> usize {
        self.retries.iter().filter(|(_, is_right)| !is_right).count()
    }

    #[inline]
    fn doubted_at(&mut self, pos: usize) -> Option<(usize, bool)> {
        let doubted = *self.doubted.front()?;
        if doubted.pos != pos {
            return None;
        }
        self.doubted.pop_front();
        Some((doubted.doubt, doubted.is_right))
    }

    /// Whether it is of a span: a decoder's has nothing.
    #[must_use]
    pub fn is_of_encoder(&self) -> bool {
        !self.runs.is_empty()
    }
}

/// Follows an expert.
struct Recorder<'a> {
    expert: AnyExpert,
    data: &'a [u8],
    record: Record,
    run: u32,
    seen: usize,
}

impl<'a> Recorder<'a> {
    fn new(expert: AnyExpert, data: &'a [u8]) -> Self {
        Self {
            expert,
            data,
            record: Record::default(),
            run: 0,
            seen: 0,
        }
    }

    /// Takes the tokens of a block. Gives whether the expert is right often enough.
    fn tokens(&mut self, mut pos: usize, mut tokens: &[Token]) -> bool {
        loop {
            let followed = self.expert.follow(self.data, pos, tokens);
            (pos, tokens) = (followed.pos, &tokens[followed.count..]);
            self.run += followed.count as u32;
            self.seen += followed.count;
            let (Some(foretold), Some((&token, rest))) = (followed.foretold, tokens.split_first()) else {
                return true;
            };
            let is_right = foretold == token;
            if let Some(doubt) = self.expert.doubt(pos) {
                self.record.doubted.push_back(Doubted { pos, doubt, is_right });
            } else {
                self.record.runs.push_back(std::mem::take(&mut self.run));
            }
            if !is_right {
                self.retry(pos, token);
                if self.record.retries.len() > ALLOWANCE + self.seen / RARELY {
                    return false;
                }
            }
            self.expert.accept(self.data, pos, token);
            (pos, tokens) = (pos + token.len(), rest);
            self.seen += 1;
        }
    }

    #[cold]
    fn retry(&mut self, pos: usize, token: Token) {
        let mut wrong = 0;
        let mut is_right = false;
        while let (false, Some(other)) = (is_right, self.expert.again(self.data, pos)) {
            is_right = other == token;
            wrong += usize::from(!is_right);
        }
        self.record.retries.push_back((wrong, is_right));
    }
}

/// Codes whether foretellings were right, each once and in order.
#[derive(Debug)]
pub struct Hits {
    /// An encoder's, in place of the expert.
    record: Record,
    maybe_runs: Option<Box<Runs>>,
    flags: Box<Flags>,
    doubts: Box<[[Counter; TIMES]; AGES]>,
    retries: [Counter; TRIES],
}

/// Retries that are told apart.
const TRIES: usize = 4;

/// How often, in 65536 times, a foretelling is right that is doubted for something so old, the oldest first.
const DOUBTS: [u16; AGES] = [37_000, 41_000, 46_000, 50_000, 54_000, 57_000, 59_500, 61_000];

impl Hits {
    /// For an expert's foretellings: in runs if there is a record, which is an encoder's or empty.
    #[must_use]
    pub fn new(maybe_record: Option<Record>) -> Self {
        let maybe_runs = maybe_record.is_some().then(|| Box::new(Runs::new()));
        Self {
            record: maybe_record.unwrap_or_default(),
            maybe_runs,
            flags: Box::new(Flags::new()),
            doubts: Box::new(DOUBTS.map(|right| [Counter::biased(right, 8); TIMES])),
            retries: [Counter::biased(35_000, 3); TRIES],
        }
    }

    /// Codes whether what was foretold at `pos` is `token`. An encoder with a record is not given an expert.
    ///
    /// # Errors
    ///
    /// `Error::Side` if what is read cannot be there.
    #[inline]
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        maybe_expert: Option<&AnyExpert>,
        pos: usize,
        foretold: Token,
        is_right: bool,
    ) -> Result<bool, Error> {
        let Some(runs) = &mut self.maybe_runs else {
            return Ok(self.flags.code(coder, foretold, is_right));
        };
        let maybe_doubted = match maybe_expert {
            Some(expert) => expert.doubt(pos).map(|doubt| (doubt, is_right)),
            None => self.record.doubted_at(pos),
        };
        match maybe_doubted {
            Some((doubt, is_right)) => {
                Ok(self.doubts[doubt / TIMES % AGES][doubt % TIMES].code(coder, is_right))
            }
            None => runs.code(coder, &mut self.record.runs),
        }
    }

    /// How many foretellings are right from here on, but for those doubted: as far as is known without coding.
    #[inline]
    #[must_use]
    pub fn sure(&self) -> usize {
        let left = self.maybe_runs.as_ref().and_then(|runs| runs.left);
        match left {
            Some(ENDLESS) => usize::MAX,
            left => left.unwrap_or(0) as usize,
        }
    }

    /// Passes over `count` of those that are `sure`.
    #[inline]
    pub fn pass(&mut self, count: usize) {
        let maybe_left = self.maybe_runs.as_mut().and_then(|runs| runs.left.as_mut());
        if let Some(left) = maybe_left.filter(|left| **left != ENDLESS) {
            *left -= count as u32;
        }
    }

    /// Of an encoder's `tokens`, the first of them at `pos`, how many are `sure`, and where they end.
    #[inline]
    #[must_use]
    pub fn sure_of(&self, mut pos: usize, tokens: &[Token]) -> (usize, usize) {
        let stop = self
            .record
            .doubted
            .front()
            .map_or(usize::MAX, |doubted| doubted.pos);
        let sure = self.sure().min(tokens.len());
        for (count, token) in tokens[..sure].iter().enumerate() {
            if pos >= stop {
                return (count, pos);
            }
            pos += token.len();
        }
        (sure, pos)
    }

    /// Codes which of the expert's other foretellings is `token`. Gives nothing if none is.
    #[cold]
    pub fn retry<C: Coder>(
        &mut self,
        coder: &mut C,
        maybe_expert: Option<&mut AnyExpert>,
        (data, pos): (&[u8], usize),
        token: Token,
    ) -> Option<Token> {
        let mut counters = (0..).map(|number: usize| number.min(TRIES - 1));
        let mut code = |is_right| self.retries[counters.next().unwrap_or(0)].code(coder, is_right);
        let Some(expert) = maybe_expert else {
            let (wrong, is_right) = self.record.retries.pop_front()?;
            for _ in 0..wrong {
                code(false);
            }
            return (is_right && code(true)).then_some(token);
        };
        while let Some(other) = expert.again(data, pos) {
            if code(other == token) {
                return Some(other);
            }
        }
        None
    }
}

/// Flags of right foretellings, by the last six of them and what was foretold.
#[derive(Debug)]
struct Flags {
    counters: [[Counter; 3]; 64],
    last: usize,
}

impl Flags {
    fn new() -> Self {
        Self {
            counters: [[Counter::biased(60_000, 1); 3]; 64],
            last: 0x3F,
        }
    }

    #[inline]
    fn code<C: Coder>(&mut self, coder: &mut C, foretold: Token, is_right: bool) -> bool {
        let kind = match foretold.len() {
            1 => 0,
            2..8 => 1,
            _ => 2,
        };
        let is_right = self.counters[self.last][kind].code_limited(coder, is_right, SLOW);
        self.last = (self.last << 1 | usize::from(is_right)) & 0x3F;
        is_right
    }
}

/// Runs of right foretellings, each but the last ended by a wrong one.
#[derive(Debug)]
struct Runs {
    left: Option<u32>,
    is_last: Counter,
    /// By the length of the run before: none, some, many.
    length: [Number; 3],
    before: usize,
}

/// No span has so many tokens.
const ENDLESS: u32 = u32::MAX;

impl Runs {
    fn new() -> Self {
        Self {
            left: None,
            is_last: Counter::biased(8000, 1),
            length: [(); 3].map(|()| Number::new()),
            before: 2,
        }
    }

    /// Whether the next foretelling is right. `given` are the runs to come, if this is an encoder.
    #[inline]
    fn code<C: Coder>(&mut self, coder: &mut C, given: &mut VecDeque<u32>) -> Result<bool, Error> {
        let left = match self.left {
            Some(left) => left,
            None => self.next(coder, given)?,
        };
        self.left = left.checked_sub(u32::from(left != ENDLESS));
        Ok(left > 0)
    }

    #[cold]
    fn next<C: Coder>(&mut self, coder: &mut C, given: &mut VecDeque<u32>) -> Result<u32, Error> {
        let run = given.pop_front().unwrap_or(0);
        if self.is_last.code(coder, given.is_empty()) {
            return Ok(ENDLESS);
        }
        let run = self.length[self.before].code(coder, run, ENDLESS - 1)?;
        self.before = usize::from(run > 0) + usize::from(run > 8);
        Ok(run)
    }
}

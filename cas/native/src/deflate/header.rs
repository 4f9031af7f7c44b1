//! Coding of the headers of dynamic blocks, against what the block's own frequencies foretell.
//!
//! A header is coded after the tokens of its block, when both sides know how often each symbol occurs.
//! First the code lengths: which rule foretells them best (`huffman`, or that they are those of the block
//! before), then for each alphabet whether all are as foretold, and if not what differs, symbol by symbol.
//! From the lengths follow their runs, in one of four ways that encoders have, or run by run; from the runs
//! the code that they are written in, by the same rules. Of a block that goes on from the span before, only
//! the lengths are coded.

use super::Error;
use super::coder::{Coder, Counter, Tree, code_raw};
use super::codes::{CODE_LENGTHS, DISTANCES, Lengths, MAX_BITS, MAX_LENGTH_BITS, ORDER, is_decodable};
use super::dynamic::{self, Header, MAX_LITERALS, MIN_LITERALS, Run};
use super::frequencies::Frequencies;
use super::huffman::{Rule, lengths};
use super::runs::{self, RunCoder, Way};

/// Number of the choice that lengths are those of the block before, or those of lengths are told one by one.
const OTHER: usize = Rule::ALL.len();

/// Which choices an encoder found to foretell a header best. A decoder reads them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Plan {
    lengths: usize,
    length_lengths: usize,
    runs: Option<Way>,
}

/// Codes headers of one span.
#[derive(Debug)]
pub struct HeaderCoder {
    lengths_rule: Tree,
    literals: LengthCoder,
    distances: LengthCoder,
    previous: Option<Lengths>,
    /// What a choice foretells that was tried last, for the block that is coded next.
    foretold: Option<(usize, Lengths)>,
    /// Whether a count is as small as it can be: of literals, distances, lengths of lengths.
    is_minimal: [Counter; 3],
    runs: RunCoder,
    length_lengths_rule: Tree,
    length_lengths: Tree,
    last_plan: Plan,
}

impl Default for HeaderCoder {
    fn default() -> Self {
        Self::new()
    }
}

impl HeaderCoder {
    #[must_use]
    pub fn new() -> Self {
        Self {
            lengths_rule: Tree::new(2),
            literals: LengthCoder::new(),
            distances: LengthCoder::new(),
            previous: None,
            foretold: None,
            is_minimal: [Counter::biased(60_000, 2); 3],
            runs: RunCoder::new(),
            length_lengths_rule: Tree::new(2),
            length_lengths: Tree::new(3),
            last_plan: Plan::default(),
        }
    }

    /// The choices that leave least to tell. Those of the header before are tried first.
    #[must_use]
    pub fn plan(&mut self, frequencies: &Frequencies, header: &Header) -> Plan {
        let mut tried = None;
        let wrong = |choice: usize| {
            let (_, foretold) = tried.insert((choice, self.foretell(frequencies, choice)));
            let differ = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a != b).count();
            differ(&foretold.literals, &header.lengths.literals)
                + differ(&foretold.distances, &header.lengths.distances)
        };
        let lengths_choice = best(self.last_plan.lengths, wrong);
        self.foretold = tried;
        let all = runs::join(&header.lengths, header.literals, header.distances);
        let of_runs = runs::frequencies(&header.runs);
        let is_right = |&choice: &usize| {
            Rule::ALL
                .get(choice)
                .is_some_and(|&rule| header.length_lengths == lengths(rule, &of_runs, MAX_LENGTH_BITS))
        };
        let last = &self.last_plan;
        Plan {
            lengths: lengths_choice,
            length_lengths: [last.length_lengths, 0, 1, 2]
                .into_iter()
                .find(is_right)
                .unwrap_or(OTHER),
            runs: runs::way(&all, header, last.runs),
        }
    }

    /// Codes a header; of one that does not begin here, its lengths alone.
    ///
    /// # Errors
    ///
    /// `Error::Side` if what is read is no header that a block could have.
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        frequencies: &Frequencies,
        header: &Header,
        plan: Plan,
        begins: bool,
    ) -> Result<Header, Error> {
        let choice = self.lengths_rule.code(coder, plan.lengths);
        let foretold = match self.foretold.take() {
            Some((tried, foretold)) if tried == choice => foretold,
            _ => self.foretell(frequencies, choice),
        };
        let before = self.previous.as_ref().unwrap_or(&foretold);
        let mut lengths = foretold.clone();
        let (literals, distances) = (&mut lengths.literals, &mut lengths.distances);
        self.literals.code(
            coder,
            &before.literals[..MAX_LITERALS],
            literals,
            &header.lengths.literals,
        )?;
        self.distances
            .code(coder, &before.distances, distances, &header.lengths.distances)?;
        dynamic::check(&lengths).map_err(Error::Side)?;
        self.previous = Some(lengths.clone());
        self.last_plan.lengths = choice;
        let mut read = Header::of_lengths(lengths);
        if begins {
            self.code_rest(coder, &mut read, header, plan)?;
        }
        Ok(read)
    }

    fn foretell(&self, frequencies: &Frequencies, choice: usize) -> Lengths {
        match (Rule::ALL.get(choice), &self.previous) {
            (None, Some(previous)) => previous.clone(),
            (rule, _) => frequencies.lengths(rule.copied().unwrap_or(Rule::Heap)),
        }
    }

    /// Codes what follows the lengths.
    fn code_rest<C: Coder>(
        &mut self,
        coder: &mut C,
        read: &mut Header,
        header: &Header,
        plan: Plan,
    ) -> Result<(), Error> {
        let [of_literals, of_distances, of_lengths] = &mut self.is_minimal;
        let least = used(&read.lengths.literals).max(MIN_LITERALS);
        read.literals = code_count(coder, of_literals, header.literals, (least, MAX_LITERALS))?;
        let least = used(&read.lengths.distances).max(1);
        read.distances = code_count(coder, of_distances, header.distances, (least, DISTANCES))?;
        let all = runs::join(&read.lengths, read.literals, read.distances);
        let (told, way) = self
            .runs
            .code(coder, &all, read.literals, &header.runs, plan.runs)?;
        read.runs = told;
        let choice = self.length_lengths_rule.code(coder, plan.length_lengths);
        read.length_lengths = match Rule::ALL.get(choice) {
            Some(&rule) => lengths(rule, &runs::frequencies(&read.runs), MAX_LENGTH_BITS),
            None => header
                .length_lengths
                .map(|length| self.length_lengths.code(coder, length.into()) as u8),
        };
        let least = ORDER
            .iter()
            .rposition(|&symbol| read.length_lengths[symbol] > 0)
            .map_or(0, |at| at + 1);
        read.code_lengths = code_count(
            coder,
            of_lengths,
            header.code_lengths,
            (least.max(4), CODE_LENGTHS),
        )?;
        self.last_plan.length_lengths = choice;
        self.last_plan.runs = way;
        let has_code = |run: &Run| read.length_lengths[usize::from(run.symbol)] > 0;
        if is_decodable(&read.length_lengths) && read.runs.iter().all(has_code) {
            return Ok(());
        }
        Err(Error::Side("code lengths are written in no code"))
    }
}

/// The number of the choice with least wrong, of those equal the last one taken or else the first.
fn best(last: usize, mut wrong: impl FnMut(usize) -> usize) -> usize {
    let mut found = (wrong(last), last);
    for choice in (0..=OTHER).filter(|&choice| choice != last) {
        if found.0 > 0 {
            let this = (wrong(choice), choice);
            found = if this.0 < found.0 { this } else { found };
        }
    }
    found.1
}

/// How many lengths there are up to the last that is not zero.
fn used(lengths: &[u8]) -> usize {
    lengths
        .iter()
        .rposition(|&length| length > 0)
        .map_or(0, |at| at + 1)
}

/// Codes a count that is usually the least it can be.
fn code_count<C: Coder>(
    coder: &mut C,
    is_minimal: &mut Counter,
    count: usize,
    (least, most): (usize, usize),
) -> Result<usize, Error> {
    if is_minimal.code(coder, count == least) {
        return Ok(least);
    }
    let more = code_raw(coder, count.wrapping_sub(least) as u32 & 0x1F, 5) as usize;
    if more == 0 || least + more > most {
        return Err(Error::Side("a header has too few or too many code lengths"));
    }
    Ok(least + more)
}

/// Codes how the lengths of an alphabet differ from those foretold.
#[derive(Debug)]
struct LengthCoder {
    all_equal: Counter,
    /// By the length foretold, whether the symbol before differed, whether the block before had this length.
    equal: Vec<[[Counter; 2]; 2]>,
    becomes_zero: Counter,
    is_longer: Counter,
    by_more: [Counter; MAX_BITS + 1],
    instead_of_zero: Tree,
}

impl LengthCoder {
    fn new() -> Self {
        Self {
            all_equal: Counter::biased(60_000, 1),
            equal: vec![[[Counter::biased(55_000, 2); 2]; 2]; MAX_BITS + 1],
            becomes_zero: Counter::new(),
            is_longer: Counter::new(),
            by_more: [Counter::biased(8000, 2); MAX_BITS + 1],
            instead_of_zero: Tree::new(4),
        }
    }

    /// `lengths` are those foretold, and become those that are.
    fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        before: &[u8],
        lengths: &mut [u8],
        actual: &[u8],
    ) -> Result<(), Error> {
        if self.all_equal.code(coder, lengths == actual) {
            return Ok(());
        }
        let mut differed = false;
        for ((length, &actual), before) in lengths.iter_mut().zip(actual).zip(before) {
            let of_before = usize::from(length == before);
            let equal = &mut self.equal[usize::from(*length)][usize::from(differed)][of_before];
            differed = !equal.code(coder, *length == actual);
            if differed {
                *length = self.code_other(coder, *length, actual)?;
            }
        }
        Ok(())
    }

    /// Codes a length that is not the one foretold.
    fn code_other<C: Coder>(&mut self, coder: &mut C, foretold: u8, actual: u8) -> Result<u8, Error> {
        const WRONG: Error = Error::Side("a code length is out of range");
        if foretold == 0 {
            let length = self.instead_of_zero.code(coder, actual.into());
            return if length == 0 { Err(WRONG) } else { Ok(length as u8) };
        }
        if self.becomes_zero.code(coder, actual == 0) {
            return Ok(0);
        }
        let longer = self.is_longer.code(coder, actual > foretold);
        let difference = usize::from(actual.abs_diff(foretold));
        let mut by = 1;
        while by < MAX_BITS && self.by_more[by].code(coder, difference > by) {
            by += 1;
        }
        let by = by as u8;
        let length = if longer {
            foretold.checked_add(by)
        } else {
            foretold.checked_sub(by)
        };
        length
            .filter(|length| (1..=MAX_BITS as u8).contains(length))
            .ok_or(WRONG)
    }
}

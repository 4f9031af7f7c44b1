//! Every expert on data of all kinds, told tokens that no encoder would write.

use super::{AnyExpert, Expert, Followed, Params, menu, parse};
use crate::deflate::budget::{ADVANCE, EARNED};
use crate::deflate::{Token, WINDOW};

/// A small generator of numbers, the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % sides
    }

    /// A number of any size below that of `bits`.
    fn power(&mut self, bits: usize) -> usize {
        let sides = 1 << self.roll(bits);
        self.roll(sides)
    }
}

/// Bytes with matches near and far, long runs, and noise.
fn mixture(dice: &mut Dice, size: usize) -> Vec<u8> {
    let mut data = vec![0; 1];
    while data.len() < size {
        let len = 1 + dice.roll(40);
        match dice.roll(12) {
            0 => (0..len).for_each(|_| data.push(dice.roll(256) as u8)),
            1 => data.extend(std::iter::repeat_n(dice.roll(3) as u8, len * 20)),
            2..5 => (0..len).for_each(|_| data.push(dice.roll(4) as u8)),
            _ => {
                let from = data.len() - 1 - dice.roll(data.len().min(35_000));
                (from..from + len).for_each(|at| data.push(data[at]));
            }
        }
    }
    data.truncate(size);
    data
}

fn is_legal(data: &[u8], pos: usize, end: usize, token: Token) -> bool {
    let (len, dist) = (token.len(), token.dist());
    pos + len <= end
        && (token.is_literal()
            || (3..=258).contains(&len)
                && (1..=WINDOW.min(pos)).contains(&dist)
                && (pos..pos + len).all(|at| data[at] == data[at - dist]))
}

/// A literal, or some match that there is at `pos`.
fn any_token(dice: &mut Dice, data: &[u8], pos: usize, end: usize) -> Token {
    let dist = 1 + dice.power(16);
    if dist > pos || dist > WINDOW {
        return Token::LITERAL;
    }
    let most = (258.min(end - pos)).min(1 + dice.roll(400));
    let len = (0..most)
        .take_while(|at| data[pos + at] == data[pos + at - dist])
        .count();
    if len < 3 {
        Token::LITERAL
    } else {
        Token::matched(len, dist)
    }
}

/// Goes through `data` in blocks and stored blocks of any size. In `surprises` of 16 tokens, what it is told
/// is not what it said.
fn follow(params: &Params, data: &[u8], start: usize, surprises: usize, dice: &mut Dice) -> Vec<Token> {
    let mut expert = AnyExpert::new(params, data, start);
    let mut told = Vec::new();
    let mut pos = start;
    while pos < data.len() {
        let end = data.len().min(pos + dice.power(18));
        if end > pos && dice.roll(8) == 0 {
            expert.stored(data, pos, end);
            pos = end;
            continue;
        }
        expert.block(data, pos, end, dice.roll(4) == 0);
        while pos < end {
            let guess = expert.predict(data, pos);
            assert!(
                is_legal(data, pos, end, guess),
                "{params:?} at {pos} of {end}: {guess:?}"
            );
            let other = dice.roll(16) < surprises;
            let token = if other {
                any_token(dice, data, pos, end)
            } else {
                guess
            };
            told.push(guess);
            while let (false, Some(again)) = (token == guess, expert.again(data, pos)) {
                assert!(
                    is_legal(data, pos, end, again),
                    "{params:?} at {pos} of {end}: {again:?}"
                );
                told.push(again);
            }
            expert.accept(data, pos, token);
            pos += token.len();
        }
    }
    told
}

#[test]
fn foretellings_are_legal_whatever_is_told() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for (number, params) in menu().into_iter().enumerate() {
        for surprises in [0, 2, 16] {
            // Some are long enough for windows to move on.
            let size = if number % 8 == 0 { 100_000 } else { 12_000 };
            let data = mixture(&mut dice, size);
            let start = dice.roll(4_000);
            follow(&params, &data, start, surprises, &mut dice);
        }
    }
}

#[test]
fn the_same_calls_give_the_same_answers() {
    let data = mixture(&mut Dice(1), 10_000);
    for params in menu() {
        let run = || follow(&params, &data, 1000, 2, &mut Dice(2));
        assert_eq!(run(), run(), "{params:?}");
    }
}

/// Lets `expert` go over the `told` tokens of a block, each of which comes with what is to be foretold for it, several
/// at once; of the encoder's or the decoder's way, what `of` gives.
fn at_once(
    expert: &mut AnyExpert,
    data: &[u8],
    mut pos: usize,
    told: &[(Token, Token)],
    of: impl Fn(&mut AnyExpert, usize, &[(Token, Token)]) -> Followed,
) {
    let mut rest = told;
    while !rest.is_empty() {
        let followed = of(expert, pos, rest);
        let (over, left) = rest.split_at(followed.count);
        assert_eq!(
            pos + over.iter().map(|(_, token)| token.len()).sum::<usize>(),
            followed.pos
        );
        (pos, rest) = (followed.pos, left);
        if let Some((&(guess, token), others)) = left.split_first() {
            let foretold = followed.foretold.unwrap_or_else(|| expert.predict(data, pos));
            assert_eq!(guess, foretold);
            expert.accept(data, pos, token);
            (pos, rest) = (pos + token.len(), others);
        }
    }
}

#[test]
fn several_tokens_at_once_are_foretold_as_one_by_one() {
    let mut dice = Dice(5);
    for params in menu() {
        let data = mixture(&mut dice, 20_000);
        let mut pos = 1 + dice.roll(4_000);
        let mut experts = [(); 3].map(|()| AnyExpert::new(&params, &data, pos));
        while pos < data.len() {
            let (end, sync) = (data.len().min(pos + 1 + dice.power(14)), dice.roll(4) == 0);
            for expert in &mut experts {
                expert.block(&data, pos, end, sync);
            }
            let [one_by_one, follower, leader] = &mut experts;
            let (mut told, mut at) = (Vec::new(), pos);
            while at < end {
                let guess = one_by_one.predict(&data, at);
                let token = match dice.roll(64) {
                    0 => any_token(&mut dice, &data, at, end),
                    _ => guess,
                };
                one_by_one.accept(&data, at, token);
                told.push((guess, token));
                at += token.len();
            }
            at_once(follower, &data, pos, &told, |expert, pos, rest| {
                let tokens: Vec<Token> = rest.iter().map(|(_, token)| *token).collect();
                expert.follow(&data, pos, &tokens)
            });
            at_once(leader, &data, pos, &told, |expert, pos, rest| {
                let enough = rest.iter().take_while(|(guess, token)| guess == token).count();
                let mut tokens = Vec::new();
                let led = expert.lead(&data, pos, (end, enough), &mut tokens);
                assert!(tokens.iter().eq(rest[..led.count].iter().map(|(_, token)| token)));
                led
            });
            pos = end;
        }
    }
}

/// A run of one byte, told in the ways that make experts look furthest. What is tested is that it ends.
#[test]
fn long_runs_take_no_long_time() {
    let data = vec![0; 10_000];
    for params in menu() {
        for token in [Token::LITERAL, Token::matched(3, 1), Token::matched(258, 1)] {
            let mut expert = AnyExpert::new(&params, &data, 1);
            expert.block(&data, 1, data.len(), false);
            let mut pos = 1;
            while pos + token.len() <= data.len() {
                expert.predict(&data, pos);
                expert.accept(&data, pos, token);
                pos += token.len();
            }
        }
    }
}

/// Text of two letters: chains through all of the window, and no match long enough to end a search.
#[test]
fn searches_take_no_more_steps_than_the_bytes_earn() {
    let mut dice = Dice(4);
    let data: Vec<u8> = (0..30_000).map(|_| b"ab"[dice.roll(2)]).collect();
    let most = ADVANCE + EARNED * data.len();
    for params in menu() {
        let is_deep = match params {
            Params::Chain(rule) => rule.depth >= 1024,
            Params::Libdeflate(rule) => rule.depth >= 300,
            Params::Miniz(rule) => rule.probes >= 512,
            _ => false,
        };
        if is_deep {
            let mut expert = AnyExpert::new(&params, &data, 0);
            expert.block(&data, 0, data.len(), false);
            parse(&mut expert, &data, 0, data.len());
            assert!(expert.spent() < most + most / 2, "{params:?}: {}", expert.spent());
            assert!(expert.spent() > most / 8, "{params:?}: {}", expert.spent());
        }
    }
}

#[test]
fn nothing_is_foretold_past_the_smallest_data() {
    for params in menu() {
        for size in 0..20 {
            let data = vec![7; size];
            for start in 0..=size {
                let tokens = follow(&params, &data, start, 0, &mut Dice(3));
                assert!(tokens.len() <= size - start, "{params:?}");
            }
        }
    }
}

#[test]
fn what_is_written_is_read_again_and_nothing_else_is() {
    for params in menu() {
        let mut bytes = Vec::new();
        params.write(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(Params::read(&mut &bytes[..cut]).is_err());
        }
        for at in 0..bytes.len() {
            for byte in [0, 1, 2, 4, 64, 127, 128, 255] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                changed.push(1);
                let mut rest = &changed[..];
                if let Ok(read) = Params::read(&mut rest) {
                    let mut again = Vec::new();
                    read.write(&mut again);
                    assert_eq!(changed[..changed.len() - rest.len()], again);
                    let _ = AnyExpert::new(&read, &[0; 300], 290);
                }
            }
        }
        bytes.push(9);
        let mut rest = &bytes[..];
        assert_eq!(Ok(params), Params::read(&mut rest));
        assert_eq!([9], rest);
    }
}

//! SHA-256 (FIPS 180-4) of several messages at a time.
//!
//! A processor with SHA-NI waits for most of the time that it hashes one message: each of its instructions needs
//! what the last one gave, four cycles later. A second message fills the gaps, so two are hashed in the time of
//! one. A scan has two of them all the time, a file and the chunks that it is cut into, and who checks chunks
//! has as many as came. Messages lie in a queue; each of two lanes takes the next one when it is done with its
//! last. Where there is no SHA-NI, all this is right and slow: `is_fast` says so, and there are better ways.

mod blocks;

pub use blocks::is_fast;
use blocks::{BLOCK, START, State, compress};

/// The SHA-256 of a message.
pub type Digest = [u8; 32];

/// A message that is still coming.
#[derive(Clone, Debug)]
pub struct Running {
    state: State,
    length: u64,
    rest: [u8; BLOCK], // the last `length % BLOCK` bytes
}

impl Default for Running {
    fn default() -> Self {
        Running {
            state: START,
            length: 0,
            rest: [0; BLOCK],
        }
    }
}

impl Running {
    /// The digest of what has come so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut job = Job::new(self.state);
        job.end(&self.rest[..self.rest_size()], self.length);
        work(std::slice::from_mut(&mut job));
        job.digest()
    }

    fn rest_size(&self) -> usize {
        usize::try_from(self.length % BLOCK as u64).unwrap_or(0)
    }

    /// The work that `data` after what has come is; takes in all of it but `state`.
    fn go_on<'a>(&mut self, data: &'a [u8]) -> Job<'a> {
        let have = self.rest_size();
        self.length += data.len() as u64;
        let mut job = Job::new(self.state);
        let mut body = data;
        if have > 0 {
            let taken = data.len().min(BLOCK - have);
            self.rest[have..have + taken].copy_from_slice(&data[..taken]);
            body = &data[taken..];
            if have + taken < BLOCK {
                return job;
            }
            job.head = Some(self.rest);
        }
        let (blocks, rest) = body.split_at(body.len() / BLOCK * BLOCK);
        self.rest[..rest.len()].copy_from_slice(rest);
        job.body = blocks;
        job
    }
}

/// The digests of the parts of `data`, which have these lengths and lie end to end from its start. Each of
/// `running` goes on with all of those parts.
///
/// # Panics
///
/// If the lengths are more than there is.
#[must_use]
pub fn digests(data: &[u8], lengths: &[usize], running: &mut [Running]) -> Vec<Digest> {
    let all = &data[..lengths.iter().sum()];
    // First what takes longest, or it would be left to one lane at the end.
    let mut jobs: Vec<Job> = running.iter_mut().map(|one| one.go_on(all)).collect();
    let mut left = all;
    for &length in lengths {
        let (part, after) = left.split_at(length);
        jobs.push(Job::of(part));
        left = after;
    }
    work(&mut jobs);
    let (streams, parts) = jobs.split_at(running.len());
    for (one, job) in running.iter_mut().zip(streams) {
        one.state = job.state;
    }
    parts.iter().map(Job::digest).collect()
}

/// Blocks of one message, in order: what was left of earlier ones, what lies in memory, what ends it.
struct Job<'a> {
    state: State,
    head: Option<[u8; BLOCK]>,
    body: &'a [u8],
    tail: [u8; 2 * BLOCK],
    tail_left: usize, // bytes at the end of `tail`
}

impl<'a> Job<'a> {
    fn new(state: State) -> Self {
        Job {
            state,
            head: None,
            body: &[],
            tail: [0; 2 * BLOCK],
            tail_left: 0,
        }
    }

    /// A whole message.
    fn of(message: &'a [u8]) -> Self {
        let (body, rest) = message.split_at(message.len() / BLOCK * BLOCK);
        let mut job = Job {
            body,
            ..Job::new(START)
        };
        job.end(rest, message.len() as u64);
        job
    }

    /// Adds the padding (FIPS 180-4, 5.1.1) after `rest`, the end of a message of `length` bytes.
    fn end(&mut self, rest: &[u8], length: u64) {
        self.tail_left = if rest.len() + 9 <= BLOCK { BLOCK } else { 2 * BLOCK };
        let tail = &mut self.tail[2 * BLOCK - self.tail_left..];
        tail[..rest.len()].copy_from_slice(rest);
        tail[rest.len()] = 0x80;
        self.tail[2 * BLOCK - 8..].copy_from_slice(&(8 * length).to_be_bytes());
    }

    /// The blocks that come next; none when it is done.
    fn ready(&self) -> &[u8] {
        match &self.head {
            Some(head) => head,
            None if !self.body.is_empty() => self.body,
            None => &self.tail[2 * BLOCK - self.tail_left..],
        }
    }

    /// Passes `size` bytes of what was ready.
    fn pass(&mut self, size: usize) {
        if self.head.is_some() {
            self.head = None;
        } else if !self.body.is_empty() {
            self.body = &self.body[size..];
        } else {
            self.tail_left -= size;
        }
    }

    fn digest(&self) -> Digest {
        let mut digest = [0; 32];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }
}

/// Does all `jobs`, two at a time.
fn work(jobs: &mut [Job]) {
    let mut waiting = 0..jobs.len();
    let mut lanes = [waiting.next(), waiting.next()];
    loop {
        for lane in &mut lanes {
            while lane.is_some_and(|at| jobs[at].ready().is_empty()) {
                *lane = waiting.next();
            }
        }
        match lanes {
            [Some(one), Some(other)] => step(jobs, one, other),
            [Some(one), None] | [None, Some(one)] => step(jobs, one, one),
            [None, None] => return,
        }
    }
}

/// Goes on with two jobs by as much as both have ready; with one, if they are the same.
fn step(jobs: &mut [Job], one: usize, other: usize) {
    let blocks = [jobs[one].ready(), jobs[other].ready()];
    let size = blocks[0].len().min(blocks[1].len());
    let mut states = [jobs[one].state, jobs[other].state];
    compress(&mut states, blocks.map(|all| &all[..size]));
    jobs[one].state = states[0];
    jobs[one].pass(size);
    if one != other {
        jobs[other].state = states[1];
        jobs[other].pass(size);
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Digest, Job, Running, START, digests};
    use crate::sha::blocks::by_definition;

    fn hex(text: &str) -> Digest {
        let mut digest = [0; 32];
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        }
        digest
    }

    fn bytes(count: u32) -> Vec<u8> {
        (0..count).map(|i| ((i * i) >> 5).to_le_bytes()[0]).collect()
    }

    /// A message on its own, a block at a time.
    fn alone(message: &[u8]) -> Digest {
        let mut padded = message.to_vec();
        padded.push(0x80);
        padded.resize((message.len() + 9).next_multiple_of(BLOCK) - 8, 0);
        padded.extend_from_slice(&(8 * message.len() as u64).to_be_bytes());
        let mut job = Job::new(START);
        padded
            .chunks(BLOCK)
            .for_each(|block| by_definition(&mut job.state, block));
        job.digest()
    }

    /// FIPS 180-4's examples, and the two that NIST adds.
    #[test]
    fn known_answers() {
        let million = vec![b'a'; 1_000_000];
        let cases: [(&[u8], &str); 3] = [
            (
                b"abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
            (
                &million,
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(vec![hex(expected)], digests(message, &[message.len()], &mut []));
            assert_eq!(hex(expected), alone(message));
        }
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(nothing), Running::default().digest());
        assert_eq!(hex(nothing), alone(b""));
    }

    /// Every length around the ends of blocks, beside messages of other lengths.
    #[test]
    fn messages_side_by_side() {
        let data = bytes(60_000);
        let lengths: Vec<usize> = (1..200).chain([1000, 1, 4096, 63, 64, 65, 9000]).collect();
        let found = digests(&data, &lengths, &mut []);
        let mut at = 0;
        for (length, found) in lengths.into_iter().zip(found) {
            assert_eq!(alone(&data[at..at + length]), found, "{length} bytes");
            at += length;
        }
    }

    #[test]
    fn a_running_one_goes_on_with_every_part() {
        let data = bytes(40_000);
        for step in [1, 63, 64, 65, 130, 1000, 7001] {
            let mut running = vec![Running::default(); 3];
            let mut at = 0;
            while at + step <= data.len().min(40 * step) {
                let lengths = [step / 3, step - step / 3]
                    .into_iter()
                    .filter(|&length| length > 0);
                let _ = digests(&data[at..], &lengths.collect::<Vec<_>>(), &mut running);
                at += step;
                assert_eq!(alone(&data[..at]), running[0].digest(), "{at} bytes by {step}");
            }
            assert_eq!(running[0].digest(), running[2].digest());
        }
    }
}

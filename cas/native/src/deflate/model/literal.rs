//! The first decision about a token: is it a literal?

use super::super::coder::Coder;
use super::mixer::{Mixer, pack};
use super::scene::{Scene, clip, count_bucket, length_bucket, log2, log2_halves};

const CONTEXTS: usize = 11;

/// Decides between a literal and a match where there is a match.
#[derive(Debug)]
pub struct LiteralModel {
    mixer: Mixer<CONTEXTS>,
}

impl LiteralModel {
    #[must_use]
    pub fn new() -> Self {
        Self {
            mixer: Mixer::new([64, 64]),
        }
    }

    #[inline]
    pub fn code<C: Coder>(&mut self, coder: &mut C, scene: &Scene, is_literal: bool) -> bool {
        let set = pack([
            (length_bucket(scene.best.len), 4),
            (scene.is_next_longer(), 1),
            (scene.after_literal(), 1),
        ]);
        let other = pack([
            (scene.first.when, 2),
            (scene.instead.when, 2),
            (scene.literals & 3, 2),
        ]);
        self.mixer.code(coder, is_literal, contexts(scene), [set, other])
    }
}

fn contexts(scene: &Scene) -> [u32; CONTEXTS] {
    let (valid, next_valid) = (scene.here.valid, scene.ahead.valid);
    let Scene {
        best,
        next,
        near4,
        near7,
        next4,
        next7,
        ..
    } = *scene;
    let (here, ahead) = (length_bucket(best.len), length_bucket(next.len));
    let after_literal = scene.after_literal();
    let nearer = log2(best.dist) as i32 - log2(next.dist) as i32;
    let balance = 4 * (i32::from(next.len) - i32::from(best.len)) + nearer;
    let equalities = pack([
        (u32::from(near4.dist == next4.dist), 1),
        (u32::from(near4.dist == best.dist), 1),
        (u32::from(next4.dist == next.dist), 1),
    ]);
    [
        pack([
            (here, 4),
            (scene.gain(), 3),
            (after_literal, 1),
            (log2(best.dist), 4),
        ]),
        pack([
            (scene.class4, 4),
            (log2(near4.dist), 4),
            (length_bucket(near4.len), 4),
            (scene.count, 3),
        ]),
        pack([
            (scene.class7, 4),
            (log2(near7.dist), 4),
            (u32::from(near7 == near4), 1),
            (scene.class_next7, 4),
            (u32::from(near7.dist == next7.dist), 1),
        ]),
        pack([
            (count_bucket(scene.run), 3),
            (here, 4),
            (ahead, 4),
            (scene.literals & 7, 3),
        ]),
        pack([
            (clip(balance, -31, 32), 6),
            (here, 4),
            (after_literal, 1),
            (scene.literals & 15, 4),
        ]),
        pack([
            (scene.literals & 63, 6),
            (here, 4),
            (scene.gain(), 3),
            (u32::from(usize::from(best.dist) == scene.last_dist), 1),
        ]),
        pack([
            (log2_halves(best.dist), 5),
            (clip(i32::from(best.len), 3, 10), 3),
            (scene.class_best, 4),
            (scene.is_next_longer(), 1),
            (after_literal, 1),
        ]),
        pack([
            (scene.class4, 4),
            (scene.class_next4, 4),
            (equalities, 3),
            (length_bucket(near4.len), 4),
        ]),
        pack([
            (valid, 4),
            (next_valid, 4),
            (scene.table_gain(), 3),
            (length_bucket(scene.here.best.len), 4),
        ]),
        pack([
            (scene.run.min(31), 5),
            (u32::from(valid > 0), 1),
            (u32::from(next_valid > 0), 1),
            (u32::from(scene.ahead.best.len > scene.here.best.len), 1),
            (scene.is_next_longer(), 1),
        ]),
        pack([
            (scene.hit, 4),
            (scene.first.when, 2),
            (scene.instead.when, 2),
            (valid, 4),
            (u32::from(next_valid > 0), 1),
            (scene.table_gain(), 3),
        ]),
    ]
}

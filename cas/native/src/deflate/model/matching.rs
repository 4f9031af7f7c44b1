//! Which match it is, if it is one of the candidates: first of which length, then which of those.

use super::super::coder::Coder;
use super::chain::Match;
use super::groups::{Candidate, Group, Groups, NONE};
use super::mixer::{Mixer, pack};
use super::scene::{Scene, clip, count_bucket, length_bucket, log2};
use super::trail::Trail;

const GROUP_CONTEXTS: usize = 11;
const MEMBER_CONTEXTS: usize = 7;
/// A group's candidates beyond these are spelt out.
const MOST_MEMBERS: u32 = 64;

/// Decides between the candidates.
#[derive(Debug)]
pub struct MatchModel {
    groups: Mixer<GROUP_CONTEXTS>,
    members: Mixer<MEMBER_CONTEXTS>,
}

/// What a group's decision is about, beside the scene.
struct Offer<'a> {
    scene: &'a Scene,
    /// Which group it is, the longest 0.
    index: usize,
    first: Candidate,
    class: u32,
    size: u32,
    /// Ways of tables that give a match of this length.
    ways: u32,
    /// The first candidates of the groups before and after it, if there are.
    longer: Match,
    shorter: Match,
}

impl MatchModel {
    #[must_use]
    pub fn new() -> Self {
        Self {
            groups: Mixer::new([128, 128]),
            members: Mixer::new([32, 64]),
        }
    }

    /// Codes which candidate `actual` is; none if it is no candidate.
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        (scene, trail, pos): (&Scene, &Trail, usize),
        groups: &Groups,
        actual: Match,
    ) -> Option<Match> {
        let is_known = groups.all().iter().any(|candidate| candidate.found == actual);
        for (index, &group) in groups.order().iter().enumerate() {
            let offer = offer(scene, trail, pos, groups, index, group);
            let other = pack([
                (index.min(3) as u32, 2),
                (u32::from(offer.ways > 0), 1),
                (scene.first.is(offer.first.found), 1),
                (scene.instead.is(offer.first.found), 1),
                (scene.longest & 3, 2),
            ]);
            let is_it = is_known && group.len == actual.len;
            if self
                .groups
                .code(coder, is_it, group_contexts(&offer), [group_set(&offer), other])
            {
                return self.member(coder, (scene, trail, pos), groups, group, actual);
            }
        }
        None
    }

    fn member<C: Coder>(
        &mut self,
        coder: &mut C,
        (scene, trail, pos): (&Scene, &Trail, usize),
        groups: &Groups,
        group: Group,
        actual: Match,
    ) -> Option<Match> {
        let mut at = group.first;
        for index in 0..MOST_MEMBERS {
            let candidate = groups.candidate(at);
            if candidate.following == NONE {
                return Some(candidate.found);
            }
            let next = groups.candidate(candidate.following);
            let dists = (candidate.found.dist, next.found.dist);
            let classes = (trail.folded(pos, dists.0), trail.folded(pos, dists.1));
            let contexts = member_contexts(scene, index, candidate, next, classes);
            let other = pack([
                (log2(dists.0), 4),
                (u32::from(scene.here.ways_at(dists.0) > 0), 1),
                (u32::from(scene.here.ways_at(dists.1) > 0), 1),
            ]);
            let set = pack([
                (index.min(7), 3),
                (u32::from(scene.near4 == candidate.found), 1),
                (u32::from(scene.near7 == candidate.found), 1),
            ]);
            if self
                .members
                .code(coder, candidate.found == actual, contexts, [set, other])
            {
                return Some(candidate.found);
            }
            at = candidate.following;
        }
        None
    }
}

fn offer<'a>(
    scene: &'a Scene,
    trail: &Trail,
    pos: usize,
    groups: &Groups,
    index: usize,
    group: Group,
) -> Offer<'a> {
    let order = groups.order();
    let first = |at: usize| {
        order
            .get(at)
            .map_or(Match::default(), |group| groups.candidate(group.first).found)
    };
    let candidate = *groups.candidate(group.first);
    Offer {
        scene,
        index,
        first: candidate,
        class: trail.folded(pos, candidate.found.dist),
        size: u32::from(group.size),
        ways: scene.here.ways_of(group.len),
        longer: first(index.wrapping_sub(1)),
        shorter: first(index + 1),
    }
}

fn group_set(offer: &Offer) -> u32 {
    let found = offer.first.found;
    let index = if offer.index == 0 {
        u32::from(offer.size > 1)
    } else {
        offer.index.min(6) as u32 + 1
    };
    pack([
        (index, 3),
        (u32::from(found == offer.scene.near4), 1),
        (u32::from(found == offer.scene.near7), 1),
        (u32::from(offer.shorter.len > 0), 1),
    ])
}

#[allow(clippy::too_many_lines)] // a list, of one context after the other
fn group_contexts(offer: &Offer) -> [u32; GROUP_CONTEXTS] {
    let Offer {
        scene,
        class,
        size,
        longer,
        shorter,
        ..
    } = *offer;
    let Candidate { found, rank, .. } = offer.first;
    let Scene {
        near4,
        near7,
        next4,
        next7,
        ..
    } = *scene;
    let index = offer.index.min(15) as u32;
    let (bucket, dist) = (length_bucket(found.len), log2(found.dist));
    let is_near = pack([(u32::from(found == near4), 1), (u32::from(found == near7), 1)]);
    let more = u32::from(shorter.len > 0);
    let is_repeat = u32::from(usize::from(found.dist) == scene.last_dist);
    let gap = |other: Match| clip(i32::from(found.len) - i32::from(other.len), -7, 7);
    let log_gap = |other: Match| clip(log2(other.dist) as i32 - dist as i32, -7, 7);
    let is_next = pack([
        (u32::from(found.dist == next4.dist), 1),
        (u32::from(found.dist == next7.dist), 1),
    ]);
    let next_gain = clip(i32::from(next7.len) + 1 - i32::from(found.len), -4, 11);
    [
        pack([
            (index, 4),
            (bucket, 4),
            (is_near, 2),
            (more, 1),
            (scene.longest & 31, 5),
        ]),
        pack([
            (class, 4),
            (dist, 4),
            (is_near, 2),
            (count_bucket(rank), 3),
            (is_repeat, 1),
        ]),
        pack([
            (rank.min(31), 5),
            (bucket, 4),
            (index.min(7), 3),
            (size.min(4) - 1, 2),
            (scene.after_literal(), 1),
        ]),
        pack([
            (gap(shorter), 4),
            (gap(longer), 4),
            (log_gap(shorter), 4),
            (log_gap(longer), 4),
            (index.min(3), 2),
        ]),
        pack([
            (is_next, 2),
            (next_gain, 4),
            (is_near, 2),
            (is_repeat, 1),
            (bucket, 4),
        ]),
        pack([
            (scene.class4, 4),
            (log2(near4.dist), 4),
            (length_bucket(near4.len), 4),
            (is_near, 2),
        ]),
        pack([
            (scene.class7, 4),
            (log2(near7.dist), 4),
            (gap(near7), 4),
            (is_near, 2),
            (more, 1),
        ]),
        pack([
            (class, 4),
            (scene.class_next7, 4),
            (scene.class_next4, 4),
            (is_next, 2),
            (is_near, 2),
        ]),
        pack([
            (offer.ways, 4),
            (scene.ahead.ways_at(found.dist), 4),
            (
                clip(i32::from(scene.ahead.best.len) - i32::from(found.len), -3, 4),
                3,
            ),
            (u32::from(found.len < scene.here.best.len), 1),
        ]),
        pack([
            (offer.ways, 4),
            (scene.here.valid, 4),
            (scene.ahead.valid, 4),
            (index.min(3), 2),
        ]),
        pack([
            (scene.first.is(found), 1),
            (scene.instead.is(found), 1),
            (scene.first.when, 2),
            (scene.instead.when, 2),
            (offer.ways, 4),
            (index.min(3), 2),
            (more, 1),
            (is_near, 2),
        ]),
    ]
}

fn member_contexts(
    scene: &Scene,
    index: u32,
    candidate: &Candidate,
    next: &Candidate,
    (class, next_class): (u32, u32),
) -> [u32; MEMBER_CONTEXTS] {
    let found = candidate.found;
    let (bucket, dist) = (length_bucket(found.len), log2(found.dist));
    let is_near = pack([
        (u32::from(found == scene.near4), 1),
        (u32::from(found == scene.near7), 1),
    ]);
    let ahead = [scene.next4, scene.next7, scene.next].map(|ahead| (u32::from(ahead.dist == found.dist), 1));
    let ahead_after =
        [scene.next4, scene.next7, scene.next].map(|ahead| (u32::from(ahead.dist == next.found.dist), 1));
    let is_repeat = u32::from(usize::from(found.dist) == scene.last_dist);
    let index = index.min(7);
    [
        pack([(index, 3), (class, 4), (next_class, 4), (bucket, 4)]),
        pack([(index, 3), (class, 4), (dist, 4), (log2(next.found.dist), 4)]),
        pack([(candidate.rank.min(31), 5), (bucket, 4), (index, 3), (is_near, 2)]),
        pack([
            (pack(ahead), 3),
            (pack(ahead_after), 3),
            (is_near, 2),
            (class, 4),
            (is_repeat, 1),
        ]),
        pack([
            (count_bucket(candidate.rank), 3),
            (count_bucket(next.rank), 3),
            (class, 4),
            (next_class, 4),
        ]),
        pack([
            (scene.here.ways_at(found.dist), 4),
            (scene.here.ways_at(next.found.dist), 4),
            (scene.ahead.ways_at(found.dist), 4),
            (scene.first.is(found), 1),
            (scene.instead.is(found), 1),
            (index, 3),
        ]),
        pack([
            (dist, 4),
            (bucket, 4),
            (is_repeat, 1),
            (scene.after_literal(), 1),
            (index, 3),
        ]),
    ]
}

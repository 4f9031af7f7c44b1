//! A scout goes through a tree ahead of a walk, in a thread of its own, and says of each directory what is in it.
//!
//! More than half of a walk is the kernel's time, and as long as Python asks a directory at a time, one processor
//! waits for the other. A scout lists directories in the order in which a walk that leaves nothing out enters
//! them: each before those in it, in byte order of their names. The walk takes the next listing if it is of the
//! directory that it enters, and looks for itself otherwise. So the scout need not be complete: it leaves out what
//! it cannot read, what lies very deep, what is very large, and other file systems. Should it list a directory
//! that the walk does not enter, the walk goes on alone from there.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, Mode, fstat};

use crate::look::{Found, is_directory, look, names_in};

/// Names that wait to be taken, at most, but for those handed over last.
const NAMES_AHEAD: usize = 4096;

/// Names that are handed over together: to wake a thread for each directory takes as long as to list it.
const NAMES_AT_ONCE: usize = 512;

/// Directories within each other that are held open.
const DEPTH: usize = 64;

/// How directories are opened, besides what they need. `quiet` leaves no trace in the time of access, which only
/// their owner may ask for: `user`, who may be 0.
#[derive(Clone, Copy)]
pub struct Manner {
    /// For all of them.
    pub flags: OFlag,
    /// For those whose owner we are.
    pub quiet: OFlag,
    /// Who we are.
    pub user: u32,
}

/// What is in a directory, and when that was found out.
pub struct Listing {
    /// The directory.
    pub path: Vec<u8>,
    /// Its names in byte order, and what they are.
    pub found: Vec<Found>,
    /// Before the first was looked at.
    pub looked: Instant,
}

impl Listing {
    fn weight(&self) -> usize {
        1 + self.found.len()
    }
}

#[derive(Default)]
struct Waiting {
    listings: VecDeque<Listing>,
    names: usize,
    over: bool,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scout that is under way; dropped, it ends.
pub struct Scout {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Scout {
    /// Goes through the open `directory`, whose path is `path`; no names of one with more than `most`.
    ///
    /// # Errors
    ///
    /// Those of opening it again, and of beginning a thread.
    pub fn new(directory: RawFd, path: &[u8], manner: Manner, most: usize) -> Result<Self, Errno> {
        let status = fstat(directory)?;
        let opened = open(directory, b".", &status, manner)?;
        let shared = Arc::new(Shared::default());
        let mut tour = Tour {
            batch: Vec::new(),
            names: 0,
            shared: Arc::clone(&shared),
            manner,
            most,
            device: status.st_dev,
        };
        let path = path.to_vec();
        let thread = Builder::new()
            .name("scout".to_owned())
            .spawn(move || {
                let mut path = path;
                tour.list(opened, &mut path, 0);
                tour.hand_over();
                tour.shared.lock().over = true;
                tour.shared.changed.notify_all();
            })
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// The next listing, waited for, if it is of the directory `path`.
    #[must_use]
    pub fn take(&self, path: &[u8]) -> Option<Listing> {
        let mut waiting = self.shared.lock();
        while waiting.listings.is_empty() && !waiting.over {
            waiting = self.shared.wait(waiting);
        }
        if waiting.listings.front()?.path != path {
            return None;
        }
        let listing = waiting.listings.pop_front()?;
        let before = waiting.names;
        waiting.names -= listing.weight();
        if before >= NAMES_AHEAD && waiting.names < NAMES_AHEAD {
            self.shared.changed.notify_all();
        }
        Some(listing)
    }
}

impl Drop for Scout {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a scout that fails has found nothing more, that is all
        }
    }
}

/// What the thread knows.
struct Tour {
    shared: Arc<Shared>,
    manner: Manner,
    most: usize,
    device: u64,
    batch: Vec<Listing>,
    names: usize,
}

impl Tour {
    /// Lists an open directory and all below it; whether to go on.
    fn list(&mut self, mut directory: Dir, path: &mut Vec<u8>, depth: usize) -> bool {
        let looked = Instant::now();
        let Ok(names) = names_in(&mut directory) else {
            return true;
        };
        if names.len() > self.most {
            return true;
        }
        let fd = directory.as_raw_fd();
        let found: Vec<Found> = names
            .into_iter()
            .map(|name| {
                let what = look(fd, name.to_bytes());
                (name, Some(what))
            })
            .collect();
        let inner: Vec<(CString, FileStat)> = found.iter().filter_map(|one| self.enters(one)).collect();
        if !self.give(Listing {
            path: path.clone(),
            found,
            looked,
        }) {
            return false;
        }
        depth + 1 == DEPTH
            || inner
                .iter()
                .all(|(name, status)| self.go_into(fd, name, status, path, depth + 1))
    }

    fn enters(&self, (name, what): &Found) -> Option<(CString, FileStat)> {
        match what {
            Some(Ok(status)) if is_directory(status) && status.st_dev == self.device => {
                Some((name.clone(), *status))
            }
            _ => None,
        }
    }

    fn go_into(
        &mut self,
        above: RawFd,
        name: &CString,
        status: &FileStat,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> bool {
        let Ok(directory) = open(above, name.to_bytes(), status, self.manner) else {
            return true;
        };
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        let goes_on = self.list(directory, path, depth);
        path.truncate(length);
        goes_on
    }

    /// Takes a listing, to be handed over with others; false when nobody wants any more.
    fn give(&mut self, listing: Listing) -> bool {
        self.names += listing.weight();
        self.batch.push(listing);
        self.names < NAMES_AT_ONCE || self.hand_over()
    }

    /// Hands over what was gathered, when there is room; false when nobody wants any more.
    fn hand_over(&mut self) -> bool {
        let mut waiting = self.shared.lock();
        while waiting.names >= NAMES_AHEAD && !waiting.closed {
            waiting = self.shared.wait(waiting);
        }
        waiting.names += self.names;
        self.names = 0;
        waiting.listings.extend(self.batch.drain(..));
        self.shared.changed.notify_all();
        !waiting.closed
    }
}

fn open(above: RawFd, name: &[u8], status: &FileStat, manner: Manner) -> Result<Dir, Errno> {
    let flags = manner.flags | OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    if manner.user == 0 || manner.user == status.st_uid {
        match Dir::openat(Some(above), name, flags | manner.quiet, Mode::empty()) {
            Err(Errno::EPERM) => {} // root of a user namespace that has no say over this owner
            opened => return opened,
        }
    }
    Dir::openat(Some(above), name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use nix::fcntl::OFlag;

    use super::{DEPTH, Manner, NAMES_AHEAD, Scout};

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cas-scout-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn scout(&self, most: usize) -> Scout {
            let manner = Manner {
                flags: OFlag::O_NOFOLLOW,
                quiet: OFlag::empty(),
                user: 0,
            };
            Scout::new(File::open(&self.0).unwrap().as_raw_fd(), b"top", manner, most).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn names(scout: &Scout, path: &str) -> Option<Vec<String>> {
        let listing = scout.take(path.as_bytes())?;
        assert_eq!(path.as_bytes(), listing.path);
        assert!(listing.found.iter().all(|(_, what)| matches!(what, Some(Ok(_)))));
        Some(
            listing
                .found
                .into_iter()
                .map(|(name, _)| name.into_string().unwrap())
                .collect(),
        )
    }

    #[test]
    fn directories_come_each_before_those_in_it() {
        let scratch = Scratch::new("order");
        for inner in ["b/x", "a/y/z", "a-"] {
            fs::create_dir_all(scratch.0.join(inner)).unwrap();
        }
        symlink("b", scratch.0.join("link")).unwrap();
        let scout = scratch.scout(10);
        assert_eq!(None, names(&scout, "top/a"));
        assert_eq!(
            Some(["a", "a-", "b", "link"].map(String::from).to_vec()),
            names(&scout, "top")
        );
        assert_eq!(None, names(&scout, "top"));
        for (path, inside) in [
            ("top/a", vec!["y"]),
            ("top/a/y", vec!["z"]),
            ("top/a/y/z", vec![]),
            ("top/a-", vec![]),
        ] {
            assert_eq!(
                Some(inside.into_iter().map(String::from).collect()),
                names(&scout, path)
            );
        }
        assert_eq!(Some(vec!["x".to_owned()]), names(&scout, "top/b"));
        assert_eq!(Some(vec![]), names(&scout, "top/b/x"));
        assert_eq!(None, names(&scout, "top/c"));
    }

    #[test]
    fn what_is_large_or_deep_is_left_out() {
        let scratch = Scratch::new("large");
        for name in ["large/1", "large/2", "large/3", "large/4", "small"] {
            fs::create_dir_all(scratch.0.join(name)).unwrap();
        }
        let deep = ["d"; DEPTH + 2].join("/");
        fs::create_dir_all(scratch.0.join("tiny").join(&deep)).unwrap();
        let scout = scratch.scout(3);
        assert!(names(&scout, "top").is_some());
        assert_eq!(None, names(&scout, "top/large"));
        assert_eq!(Some(vec![]), names(&scout, "top/small"));
        let mut path = "top/tiny".to_owned();
        let mut depth = 1;
        while names(&scout, &path).is_some() {
            path.push_str("/d");
            depth += 1;
        }
        assert_eq!(DEPTH, depth);
    }

    #[test]
    fn it_ends_whenever_nobody_takes_any_more() {
        let scratch = Scratch::new("end");
        for at in 0..40 {
            let inner = scratch.0.join(format!("{at:02}"));
            fs::create_dir(&inner).unwrap();
            for name in 0..NAMES_AHEAD / 16 {
                fs::write(inner.join(format!("{name}")), "").unwrap();
            }
        }
        for taken in [0, 1, 2, 30] {
            let scout = scratch.scout(NAMES_AHEAD);
            let mut paths = vec!["top".to_owned()];
            paths.extend((0..40).map(|at| format!("top/{at:02}")));
            for path in &paths[..taken] {
                assert!(names(&scout, path).is_some());
            }
            drop(scout);
        }
    }
}

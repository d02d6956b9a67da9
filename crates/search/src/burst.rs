//! The longest burst of frames at one rate of which none is lost (RFC 2544, section 26.4, and RFC 9004).

/// The distance of the longest burst without loss and the shortest one with it, over the former.
const WIDTH: f64 = 0.01;

/// The bursts of an arm: each twice as long as the one before while nothing is lost, then by bisection. Of a length,
/// two must lose something.
#[derive(Debug, Clone)]
pub struct BurstSearch {
    first: u64,
    longest: u64,
    without_loss: u64,
    with_loss: Option<u64>,
    /// A burst that lost something once. Anything may lose a message: it is sent again.
    suspected: Option<u64>,
}

/// What is known of bursts, frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongestBurst {
    /// The longest burst of which nothing was lost.
    Frames(u64),
    /// Nothing of the longest burst that may be sent was lost.
    NotReached(u64),
    /// A single frame was lost.
    None,
}

impl BurstSearch {
    /// Begins with a burst of `first` frames, and sends none longer than `longest`.
    pub fn new(first: u64, longest: u64) -> Self {
        let longest = longest.max(1);
        BurstSearch {
            first: first.clamp(1, longest),
            longest,
            without_loss: 0,
            with_loss: None,
            suspected: None,
        }
    }

    /// Frames of the next burst; `None` once the longest one is known.
    pub fn next_burst(&self) -> Option<u64> {
        if self.suspected.is_some() {
            return self.suspected;
        }
        match self.with_loss {
            None if self.without_loss == 0 => Some(self.first),
            None if self.without_loss >= self.longest => None,
            None => Some(self.without_loss.saturating_mul(2).min(self.longest)),
            Some(with_loss) => {
                let least = ((self.without_loss as f64 * WIDTH) as u64).max(1);
                let distance = with_loss.saturating_sub(self.without_loss);
                (distance > least).then(|| self.without_loss + distance / 2)
            }
        }
    }

    /// Adds a burst of this many frames.
    pub fn add(&mut self, frames: u64, lost_some: bool) {
        let is_suspected = self.suspected.take().is_some();
        if lost_some && !is_suspected {
            self.suspected = Some(frames);
        } else if lost_some {
            self.with_loss = Some(self.with_loss.map_or(frames, |least| least.min(frames)));
        } else {
            self.without_loss = self.without_loss.max(frames);
        }
    }

    /// The longest burst; `None` while bursts are to be sent.
    pub fn find_longest(&self) -> Option<LongestBurst> {
        if self.next_burst().is_some() {
            return None;
        }
        Some(match (self.without_loss, self.with_loss) {
            (0, _) => LongestBurst::None,
            (frames, None) => LongestBurst::NotReached(frames),
            (frames, Some(_)) => LongestBurst::Frames(frames),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts into a queue that loses something of each burst above `room`: what is found, and after how many.
    fn search(room: u64, first: u64, longest: u64) -> (LongestBurst, u32) {
        let mut search = BurstSearch::new(first, longest);
        let mut bursts = 0;
        while let Some(frames) = search.next_burst() {
            assert!((1..=longest).contains(&frames), "{frames}");
            search.add(frames, frames > room);
            bursts += 1;
        }
        (search.find_longest().unwrap(), bursts)
    }

    #[test]
    fn longest_burst_is_within_a_per_cent() {
        for room in [1, 7, 100, 416, 2_890, 99_000] {
            let (LongestBurst::Frames(frames), bursts) = search(room, 100, 200_000) else {
                panic!("no burst for {room}")
            };
            assert!(frames <= room && frames as f64 >= 0.99 * room as f64 - 1.0, "{frames} of {room}");
            assert!(bursts < 40, "{bursts}");
        }
    }

    #[test]
    fn bursts_end_at_the_longest() {
        assert_eq!(search(5_000, 100, 1_000).0, LongestBurst::NotReached(1_000));
        assert_eq!(search(0, 100, 1_000).0, LongestBurst::None);
        assert_eq!(search(5, 0, 1), (LongestBurst::NotReached(1), 1));
    }

    #[test]
    fn a_loss_by_chance_ends_nothing() {
        let mut search = BurstSearch::new(64, 1_000);
        search.add(64, true);
        assert_eq!(search.next_burst(), Some(64));
        search.add(64, false);
        assert_eq!(search.next_burst(), Some(128));
    }

    #[test]
    fn counts_from_a_host_do_not_keep_it_going() {
        let mut search = BurstSearch::new(100, 1_000);
        search.add(u64::MAX, false);
        assert_eq!(search.find_longest(), Some(LongestBurst::NotReached(u64::MAX)));
        search.add(0, true);
        search.add(0, true);
        assert_eq!(search.next_burst(), None);
    }
}

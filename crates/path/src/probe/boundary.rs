//! The last value of a probe that still gets through, where echoes and their answers may be lost.

/// Echoes at a value before the search takes it for one that does not get through, for now.
const TRIES: u32 = 2;
/// A silence is taken for an answer when loss explains it with at most this probability.
const DOUBT: f64 = 0.001;
/// Echoes at a value that stays silent, at least: the loss itself is estimated from few.
const MIN_SILENT: u32 = 6;
/// Echoes in all, about: a path that needs more has no answer.
const MAX_ASKED: u32 = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Yes,
    No,
    /// Nothing: it was lost, or nobody says that it does not get through.
    Nothing,
}

/// The boundary between a value that gets through and one that does not: the last one that does. `next` chooses a value
/// between the two. `None` if too much is lost to tell. `proven_no` is a value that is known not to get through.
pub(crate) fn boundary<E>(
    yes: u32,
    proven_no: u32,
    next: impl Fn(u32, u32) -> u32,
    mut ask: impl FnMut(u32) -> Result<Reply, E>,
) -> Result<Option<u32>, E> {
    let mut search = BoundarySearch { yes, no: proven_no, proven: proven_no, asked: 0, answered: 0, lost: 0 };
    loop {
        search.bisect(&next, &mut ask)?;
        match search.explain_silence(&mut ask)? {
            Silence::Refusal => return Ok(Some(search.yes)),
            Silence::Loss => {}
            Silence::Unknown => return Ok(None),
        }
    }
}

/// What is known of a boundary.
struct BoundarySearch {
    /// The last value that got through.
    yes: u32,
    /// The first value that did not, for now.
    no: u32,
    /// The first value that is known not to get through.
    proven: u32,
    /// Echoes sent.
    asked: u32,
    /// Echoes that were answered, and echoes lost, at values that get through.
    answered: u32,
    lost: u32,
}

/// Why a value is silent.
enum Silence {
    /// It does not get through: a router says so, or loss does not explain the silence.
    Refusal,
    /// It gets through, and its echoes were lost.
    Loss,
    /// So much is lost that nobody can tell.
    Unknown,
}

impl BoundarySearch {
    /// Narrows the boundary down to two neighbours, where silence counts as a refusal.
    fn bisect<E>(
        &mut self,
        next: &impl Fn(u32, u32) -> u32,
        ask: &mut impl FnMut(u32) -> Result<Reply, E>,
    ) -> Result<(), E> {
        while self.yes.abs_diff(self.no) > 1 {
            let value = next(self.yes, self.no);
            let mut reply = Reply::Nothing;
            let mut silent = 0;
            while reply == Reply::Nothing && silent < TRIES {
                self.asked += 1;
                reply = ask(value)?;
                silent += u32::from(reply == Reply::Nothing);
            }
            match reply {
                Reply::Yes => {
                    self.yes = value;
                    self.answered += 1;
                    self.lost += silent;
                }
                Reply::No => {
                    self.no = value;
                    self.proven = value;
                }
                Reply::Nothing => self.no = value,
            }
        }
        Ok(())
    }

    /// Asks a value that nobody refused, whose echoes may have been lost, until loss does not explain the silence.
    fn explain_silence<E>(&mut self, ask: &mut impl FnMut(u32) -> Result<Reply, E>) -> Result<Silence, E> {
        let mut silent = TRIES;
        while self.no != self.proven {
            let loss = f64::from(self.lost + 1) / f64::from(self.answered + self.lost + 2);
            if silent >= MIN_SILENT && loss.powi(silent.cast_signed()) < DOUBT {
                return Ok(Silence::Refusal);
            }
            if self.asked > MAX_ASKED {
                return Ok(Silence::Unknown);
            }
            self.asked += 2;
            match ask(self.no)? {
                Reply::No => self.proven = self.no,
                // How much is lost at present, by a value that gets through.
                Reply::Nothing => {
                    silent += 1;
                    match ask(self.yes)? {
                        Reply::Yes => self.answered += 1,
                        _ => self.lost += 1,
                    }
                }
                Reply::Yes => {
                    self.yes = self.no;
                    self.no = self.proven;
                    self.answered += 1;
                    self.lost += silent;
                    return Ok(Silence::Loss);
                }
            }
        }
        Ok(Silence::Refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn middle(yes: u32, no: u32) -> u32 {
        yes.min(no) + yes.abs_diff(no) / 2
    }

    /// A path of which this share of echoes is lost, in a fixed random order; refusals come if `speaks`.
    fn path(
        last: u32,
        up: bool,
        speaks: bool,
        loss: f64,
        seed: u64,
    ) -> impl FnMut(u32) -> Result<Reply, Infallible> {
        let mut state = seed;
        move |value| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lost = ((state >> 33) as f64) / f64::from(1_u32 << 31) < loss;
            let through = if up { value <= last } else { value >= last };
            Ok(match (lost, through) {
                (true, _) => Reply::Nothing,
                (false, true) => Reply::Yes,
                (false, false) if speaks => Reply::No,
                (false, false) => Reply::Nothing,
            })
        }
    }

    #[test]
    fn a_lost_echo_is_not_taken_for_a_router() {
        for loss in [0.0, 0.15, 0.3] {
            let mut wrong = 0;
            let mut unknown = 0;
            for seed in 0..1_000 {
                for (hops, speaks) in [(1, true), (1, false), (9, true), (9, false), (40, true)] {
                    match boundary(64, 0, middle, path(hops, false, speaks, loss, seed)).unwrap() {
                        Some(found) => wrong += u32::from(found != hops),
                        None => unknown += 1,
                    }
                }
                let found = boundary(576, 9000, middle, path(1340, true, false, loss, seed)).unwrap();
                wrong += u32::from(found.is_some_and(|found| found != 1340));
            }
            assert!(wrong <= 12 && unknown <= 60, "loss {loss}: {wrong} wrong, {unknown} unknown of 6000");
        }
    }

    #[test]
    fn a_path_without_loss_costs_few_echoes() {
        for (hops, most) in [(1, 6), (2, 20), (30, 24)] {
            let mut asked = 0;
            let mut path = path(hops, false, false, 0.0, 1);
            let found = boundary(64, 0, middle, |value| {
                asked += 1;
                path(value)
            });
            assert_eq!(found.unwrap(), Some(hops));
            assert!(asked <= most, "{hops}: {asked}");
        }
    }

    #[test]
    fn a_path_that_loses_nearly_all_has_no_answer() {
        let found = boundary(64, 0, middle, path(9, false, true, 0.97, 3)).unwrap();
        assert!(found.is_none_or(|found| found == 9), "{found:?}");
    }
}

//! The search for the commit that changed the counts: by halves, as git does it. Both ends and the result are verified.

use crate::change::Quantity;
use crate::comparison::{Condition, KernelComparison};
use crate::counter::{CountedKernel, Counter};
use crate::git::{Commit, Repository, Source};
use crate::{NOTICEABLE, RegressError};
use serde::Serialize;

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bisection {
    pub(crate) conditions: Vec<String>,
    /// The bad end against the good one.
    pub(crate) ends: KernelComparison,
    pub(crate) found: BisectResult,
    /// Commits that were counted between the ends, and whether they are bad; `None`: they cannot be built or booted.
    pub(crate) steps: Vec<(Commit, Option<bool>)>,
    /// Kernels that were built for the ends, and for all.
    pub(crate) built: [u32; 2],
    /// Commits whose counts were known.
    pub(crate) known: u32,
}

/// The commit that was searched for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BisectResult {
    /// The first bad commit, against its parent if the parent can be counted.
    Commit(Commit, Option<Box<KernelComparison>>),
    /// One of these: others between them cannot be built or booted.
    Among(Vec<Commit>),
}

/// Searches the first bad commit between two. Without conditions, the change between the ends gives one.
pub fn bisect(
    counter: &mut Counter<'_>,
    repository: &Repository,
    ends: [&str; 2],
    conditions: &[Condition],
) -> Result<Bisection, RegressError> {
    let ends = [repository.commit(ends[0])?, repository.commit(ends[1])?];
    search(counter, repository, ends, conditions)
}

/// Counts commits, and reports steps: [`Counter`], or made-up counts in tests.
trait CountCommits {
    fn count_commit(
        &mut self,
        repository: &Repository,
        commit: &Commit,
    ) -> Result<CountedKernel, RegressError>;
    fn say(&mut self, what: &str);
    /// Kernels that were built so far, and commits whose counts were known.
    fn effort(&self) -> [u32; 2];
}

impl CountCommits for Counter<'_> {
    fn count_commit(
        &mut self,
        repository: &Repository,
        commit: &Commit,
    ) -> Result<CountedKernel, RegressError> {
        self.count(&commit.short(), &Source::Commit(repository.clone(), commit.clone()))
    }

    fn say(&mut self, what: &str) {
        Counter::say(self, what);
    }

    fn effort(&self) -> [u32; 2] {
        [self.built, self.known]
    }
}

fn search(
    counter: &mut impl CountCommits,
    repository: &Repository,
    [good, mut bad]: [Commit; 2],
    conditions: &[Condition],
) -> Result<Bisection, RegressError> {
    if good == bad || !repository.is_ancestor(&good, &bad) {
        let reason = format!("{} is not an ancestor of {}: name GOOD, then BAD", good.short(), bad.short());
        return Err(RegressError::Usage(reason));
    }
    let baseline = counter.count_commit(repository, &good)?;
    let last = counter.count_commit(repository, &bad)?;
    let [built_for_ends, _] = counter.effort();
    let conditions = match conditions {
        [] => derive_condition(&baseline, &last)?,
        given => given.to_vec(),
    };
    let names: Vec<String> = conditions.iter().map(Condition::to_string).collect();
    let ends = KernelComparison::new(&baseline, &last, &conditions);
    if !ends.is_bad {
        return Err(RegressError::Usage(format!("{} is not bad by {}", last.name, names.join(", "))));
    }
    counter.say(&format!("bad means {}", names.join(", ")));
    let mut goods = vec![good];
    let mut skipped = Vec::new();
    let mut steps = Vec::new();
    let among = loop {
        let suspects = repository.suspects(&bad, &goods)?;
        counter.say(&format!("commits that may be the first bad one: {}", suspects.len()));
        let Some(next) = suspects.iter().find(|hash| **hash != bad.hash && !skipped.contains(*hash)) else {
            break suspects;
        };
        let commit = repository.commit(next)?;
        let is_bad = match counter.count_commit(repository, &commit) {
            Ok(counted) => Some(KernelComparison::new(&baseline, &counted, &conditions).is_bad),
            Err(RegressError::Kernel(reason)) => {
                counter.say(&format!("{} is skipped: {reason}", commit.short()));
                None
            }
            Err(error) => return Err(error),
        };
        steps.push((commit.clone(), is_bad));
        match is_bad {
            Some(true) => bad = commit,
            Some(false) => goods.push(commit),
            None => skipped.push(commit.hash),
        }
    };
    let found = match among.len() {
        1 => {
            let verified = compare_with_parent(counter, repository, &bad, &conditions)?;
            BisectResult::Commit(bad, verified.map(Box::new))
        }
        _ => BisectResult::Among(among.iter().map(|hash| repository.commit(hash)).collect::<Result<_, _>>()?),
    };
    let [built, known] = counter.effort();
    Ok(Bisection { conditions: names, ends, found, steps, built: [built_for_ends, built], known })
}

/// The commit that was found against its parent; `None` if the parent cannot be built or booted.
fn compare_with_parent(
    counter: &mut impl CountCommits,
    repository: &Repository,
    found: &Commit,
    conditions: &[Condition],
) -> Result<Option<KernelComparison>, RegressError> {
    let parent = repository.parent(found)?;
    let before = match counter.count_commit(repository, &parent) {
        Ok(before) => before,
        Err(RegressError::Kernel(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let after = counter.count_commit(repository, found)?;
    Ok(Some(KernelComparison::new(&before, &after, conditions)))
}

/// Half of the largest change between the ends as a limit: of the gap between the families if that grew noticeably,
/// else of a family.
fn derive_condition(good: &CountedKernel, bad: &CountedKernel) -> Result<Vec<Condition>, RegressError> {
    let ends = KernelComparison::new(good, bad, &[]);
    for quantity in [Quantity::Gap, Quantity::Ipv6, Quantity::Ipv4] {
        if let Some((cell, change)) = ends.largest(quantity)
            && change > NOTICEABLE
        {
            return Ok(vec![Condition::above(Some(&cell.name), quantity, (change / 2.0).round())]);
        }
    }
    Err(RegressError::Usage(format!(
        "{} takes no more instructions than {}: {} changed by more than {NOTICEABLE} per message",
        bad.name,
        good.name,
        ends.outcome.name()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::make_counts;
    use crate::git::tests::repository;

    /// Kernels whose IPv6 takes 10 instructions more from the commit `Write bad` on, and that do not compile at those
    /// whose message ends with `broken`.
    #[derive(Default)]
    struct Fake(Vec<String>);

    impl CountCommits for Fake {
        fn count_commit(
            &mut self,
            repository: &Repository,
            commit: &Commit,
        ) -> Result<CountedKernel, RegressError> {
            self.0.push(commit.subject.clone());
            if commit.subject.ends_with("broken") {
                return Err(RegressError::Kernel("error: no".to_owned()));
            }
            let history = repository.ask(&["log", "--format=%s", &commit.hash]).unwrap();
            let added = if history.contains("Write bad") { 100 } else { 0 };
            Ok(make_counts(&commit.subject, [1000, 2000 + added], [3000, 4000]))
        }

        fn say(&mut self, _: &str) {}

        fn effort(&self) -> [u32; 2] {
            [self.0.len() as u32, 0]
        }
    }

    fn search_history(texts: &[&str]) -> (Bisection, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path(), texts);
        let ends = [format!("HEAD~{}", texts.len() - 1), "HEAD".to_owned()]
            .map(|name| repository.commit(&name).unwrap());
        let mut fake = Fake::default();
        let found = search(&mut fake, &repository, ends, &[]).unwrap();
        (found, fake.0)
    }

    #[test]
    fn the_first_bad_commit_is_found_in_log_n_steps() {
        for place in 1..17 {
            let mut texts: Vec<String> = (0..17).map(|number| number.to_string()).collect();
            texts[place] = "bad".to_owned();
            let (found, counted) = search_history(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let BisectResult::Commit(commit, Some(verified)) = &found.found else { panic!("{found:?}") };
            assert_eq!((commit.subject.as_str(), verified.is_bad), ("Write bad", true));
            assert_eq!(verified.baseline.name, format!("Write {}", place - 1));
            assert!(found.steps.len() <= 4, "{counted:?}");
            assert_eq!((found.built[0], found.conditions[0].as_str()), (2, "udp/128 gap > 5"));
        }
    }

    #[test]
    fn broken_commits_are_skipped() {
        let (found, _) = search_history(&["0", "1", "2", "a broken", "4", "bad", "6"]);
        let BisectResult::Commit(commit, Some(verified)) = found.found else { panic!("{found:?}") };
        assert_eq!((commit.subject.as_str(), verified.is_bad), ("Write bad", true));
        assert!(
            found.steps.iter().any(|(commit, is_bad)| commit.subject == "Write a broken" && is_bad.is_none())
        );
        let (found, counted) = search_history(&["0", "1", "a broken", "b broken", "bad", "5", "6"]);
        let BisectResult::Among(commits) = &found.found else { panic!("{found:?}") };
        let mut subjects: Vec<&str> = commits.iter().map(|commit| commit.subject.as_str()).collect();
        subjects.sort();
        assert_eq!(subjects, ["Write a broken", "Write b broken", "Write bad"], "{counted:?}");
    }

    #[test]
    fn the_ends_give_the_condition() {
        let good = make_counts("a", [1000, 2000], [3000, 4000]);
        let condition = |udp, tcp| {
            derive_condition(&good, &make_counts("b", udp, tcp)).map(|conditions| conditions[0].to_string())
        };
        // A slowdown of both families hides a larger one of IPv6.
        assert_eq!(condition([1500, 3500], [3000, 4000]).unwrap(), "udp/128 gap > 50");
        assert_eq!(condition([1500, 2500], [3000, 4000]).unwrap(), "udp/128 ipv6 > 25");
        assert_eq!(condition([1000, 2000], [3200, 4100]).unwrap(), "tcp/128 ipv6 > 5");
        let reason = condition([1000, 1900], [3000, 4010]).unwrap_err().to_string();
        assert!(reason.contains("b takes no more instructions than a"), "{reason}");
    }
}

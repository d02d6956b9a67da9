//! Errors are of trials: sockets of one trial are alike, those of another trial are not.

use super::*;

fn alike(trials: u64, windows: u64, sd_ns: [f64; 2], random: &mut SplitMix64) -> Option<StageCosts> {
    let (profile, arms) = make_alike(trials, windows, sd_ns, random);
    costs_of(&profile, &arms)
}

fn costs_of(profile: &Profile, [a, b]: &[Vec<ArmSlice>; 2]) -> Option<StageCosts> {
    stage_costs(profile, [a, b], String::new(), Default::default())
}

/// Two stages of an arm without a real difference, in trials of some windows. Each trial moves the first stage of each
/// arm by a normal amount, and so does each window.
fn make_alike(
    trials: u64,
    windows: u64,
    sd_ns: [f64; 2],
    random: &mut SplitMix64,
) -> (Profile, [Vec<ArmSlice>; 2]) {
    const MESSAGES: f64 = 1000.0;
    let stages = vec![name_stage("copy", StageKind::Stack), name_stage("route lookup", StageKind::Stack)];
    let mut profile = Profile { stages, ..Profile::default() };
    let mut slices = [Vec::new(), Vec::new()];
    for trial in 0..trials {
        let of_trial = [(); 2].map(|()| sd_ns[0] * draw_normal(random));
        for window in 0..2 * windows {
            let from_ns = 1_000_000 + (2 * windows * trial + window) * WINDOW_NS;
            let is_sampled = window % 2 == 0;
            profile.windows.push(Window { from_ns, to_ns: from_ns + WINDOW_NS, is_sampled });
            for (turn, arm) in [0, 1].into_iter().enumerate() {
                let first_ns = from_ns + 1_000_000 + turn as u64 * SLICE_NS;
                slices[arm].push(ArmSlice {
                    trial: trial as u32,
                    from_ns: first_ns,
                    to_ns: first_ns + SLICE_NS / 2,
                    messages: MESSAGES as u64,
                    cpu_ns: (1000.0 * MESSAGES) as u64,
                    is_whole: true,
                });
                if !is_sampled {
                    continue;
                }
                let copy_ns = 500.0 + of_trial[arm] + sd_ns[1] * draw_normal(random);
                for (stage, ns) in [(0, copy_ns), (1, 300.0)] {
                    profile.samples.push(Sample {
                        time_ns: first_ns + 1000 + u64::from(stage),
                        stands_for_ns: (ns * MESSAGES) as u64,
                        cpu: 0,
                        stage,
                        function: 0,
                        stack: u32::MAX,
                        is_own: true,
                    });
                }
            }
        }
    }
    (profile, slices)
}

fn draw_normal(random: &mut SplitMix64) -> f64 {
    (0..12).map(|_| draw_unit(random)).sum::<f64>() - 6.0
}

/// The share of runs with two equal arms in which a stage's 95 % interval excludes zero (p < 0.05). The unit is the
/// trial, or a window with samples together with the one after it.
fn estimate_misses(windows: u64, ratio: f64, by_windows: bool) -> f64 {
    const RUNS: u32 = 1500;
    let mut random = SplitMix64(windows);
    let mut missed = 0;
    for _ in 0..RUNS {
        let (profile, mut arms) = make_alike(8, windows, [ratio * 10.0, 10.0], &mut random);
        if by_windows {
            let slices = arms.iter_mut().flatten();
            slices.for_each(|slice| slice.trial = (slice.from_ns / (2 * WINDOW_NS)) as u32);
        }
        let costs = costs_of(&profile, &arms).unwrap();
        let copy = find_row(&costs, "copy");
        missed += u32::from(copy.difference_ns.abs() > costs.half_width_ns(copy));
    }
    f64::from(missed) / f64::from(RUNS)
}

#[test]
fn intervals_miss_in_one_of_twenty() {
    for windows in [3, 14] {
        for ratio in [0.0, 0.5, 1.0, 2.0] {
            let share = estimate_misses(windows, ratio, false);
            println!("8 trials of {windows} windows, sd of trials over windows {ratio}: {share:.4} missed");
            assert!((0.03..=0.07).contains(&share), "{share} with {windows} windows and ratio {ratio}");
        }
    }
}

/// The test above fails if windows are the unit.
#[test]
fn intervals_by_windows_miss_more_often() {
    for (windows, ratio, least) in [(3, 1.0, 0.08), (3, 2.0, 0.15), (14, 1.0, 0.3), (14, 2.0, 0.4)] {
        let share = estimate_misses(windows, ratio, true);
        println!("by windows, 8 trials of {windows}, sd of trials over windows {ratio}: {share:.4} missed");
        assert!(share > least, "{share} with {windows} windows and ratio {ratio}");
    }
}

#[test]
fn error_is_the_standard_error_of_trials() {
    let costs = alike(8, 3, [10.0, 0.0], &mut SplitMix64(7)).unwrap();
    let copy = find_row(&costs, "copy");
    // The difference of two normal costs of 10 ns each, over eight trials: sqrt(2 * 100 / 8) = 5 ns.
    assert!((2.5..8.0).contains(&copy.error_ns), "{copy:?}");
    assert_eq!(costs.health.trials, 8);
    // Student's 97.5 % quantile with seven degrees of freedom.
    assert!((costs.half_width_ns(copy) / copy.error_ns - 2.3646).abs() < 1e-3, "{copy:?}");
}

#[test]
fn few_trials_are_less_certain_and_one_gives_none() {
    // Student's quantiles of 29, 5 and 1 degrees of freedom.
    for (trials, windows, quantile) in [(30, 1, 2.0452), (6, 5, 2.5706), (2, 15, 12.7062)] {
        let found = find_quantile(trials, windows).unwrap();
        assert!((found - quantile).abs() < 1e-3, "{found}");
    }
    assert_eq!(find_quantile(1, 30), None);
}

fn find_quantile(trials: u64, windows: u64) -> Option<f64> {
    let costs = alike(trials, windows, [10.0, 0.0], &mut SplitMix64(3))?;
    let copy = costs.stages.iter().find(|row| row.name == "copy")?;
    copy.adjusted_p.map(|_| costs.health.t95)
}

#[test]
fn a_window_over_two_trials_counts_for_both() {
    let (profile, arms) = make_windows([[0.5, 0.3, 0.2], [5.8 / 11.0, 3.0 / 11.0, 0.2]], 1, false);
    // Trials end within windows, at other slices in each arm.
    let [a, b] = arms.map(|mut arm| {
        for (place, slice) in (0..).zip(&mut arm) {
            slice.trial = place / 137;
        }
        arm
    });
    let found = stage_costs(&profile, [&a, &b], String::new(), Default::default()).unwrap();
    let route = find_row(&found, "route lookup");
    assert!((route.difference_ns - 80.0).abs() < 3.0 * route.error_ns && route.differs(), "{route:?}");
}

//! Simulated runs of two arms, block by block.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Mean and standard deviation of a log-normal figure of 0.8.
pub(crate) const SKEWED_MEAN: f64 = 1.377_127_764_3;
pub(crate) const SKEWED_SD: f64 = 1.303_901_394_4;

/// How runs are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Figures are normal.
    Normal,
    /// Figures are log-normal: their logarithms are normal.
    LogNormal,
    /// A floor and a log-normal tail above it (skewness 1.75), as delays have.
    Skewed,
    /// Each run resembles the one before it in time, whatever its arm: a first-order autoregression of 0.5 in the order
    /// of the runs, which blocks shuffle.
    Autocorrelated,
    /// The difference between the arms itself wanders from block to block, a first-order autoregression of 0.2: no
    /// design of blocks helps against that.
    Wandering,
}

impl Spread {
    /// All of them.
    pub const ALL: [Spread; 5] =
        [Spread::Normal, Spread::LogNormal, Spread::Skewed, Spread::Autocorrelated, Spread::Wandering];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Spread::Normal => "normal",
            Spread::LogNormal => "log-normal",
            Spread::Skewed => "skewed",
            Spread::Autocorrelated => "autocorrelated",
            Spread::Wandering => "wandering",
        }
    }
}

/// Simulated campaigns: the same seed gives the same ones.
pub struct Simulation {
    generator: Pcg64Mcg,
    spread: Spread,
    /// Standard deviation of a run, as a share of the figure.
    sd: f64,
    /// The state of autoregressions.
    state: Option<f64>,
}

impl Simulation {
    /// Runs of such a spread.
    pub fn new(seed: u128, spread: Spread, sd: f64) -> Self {
        Simulation { generator: Pcg64Mcg::new(seed), spread, sd, state: None }
    }

    /// Forgets the runs so far: the next ones are another campaign's.
    pub fn restart(&mut self) {
        self.state = None;
    }

    /// A block: figures of baseline and candidate, the latter `ratio` times the former but for their spread. What the
    /// block does to both cancels in the ratio.
    pub fn pair(&mut self, ratio: f64) -> (f64, f64) {
        let block = 100.0 * (0.2 * self.normal()).exp();
        let [baseline, candidate] = match self.spread {
            Spread::Normal => [(); 2].map(|()| (1.0 + self.sd * self.normal()).max(0.01)),
            Spread::LogNormal => [(); 2].map(|()| (self.sd * self.normal()).exp()),
            Spread::Skewed => [(); 2].map(|()| self.draw_skewed_figure()),
            Spread::Autocorrelated => {
                let mut runs = [(); 2].map(|()| (self.sd * self.follow(0.5)).exp());
                if self.generator.random() {
                    runs.reverse();
                }
                runs
            }
            Spread::Wandering => [1.0, (self.sd * std::f64::consts::SQRT_2 * self.follow(0.2)).exp()],
        };
        (block * baseline, block * candidate * ratio)
    }

    /// A figure of one cell about `mean`, one block after another. Between blocks of two runs an autoregression of 0.5
    /// from run to run is one of 0.25.
    pub fn figure(&mut self, mean: f64) -> f64 {
        mean * match self.spread {
            Spread::Normal => 1.0 + self.sd * self.normal(),
            Spread::LogNormal => (self.sd * self.normal() - self.sd * self.sd / 2.0).exp(),
            Spread::Skewed => self.draw_skewed_figure(),
            Spread::Autocorrelated => 1.0 + self.sd * self.follow(0.25),
            Spread::Wandering => 1.0 + self.sd * self.follow(0.2),
        }
    }

    /// A figure between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        self.generator.random()
    }

    /// Mean 1, standard deviation `sd`.
    fn draw_skewed_figure(&mut self) -> f64 {
        const SIGMA: f64 = 0.5;
        let mean = (SIGMA * SIGMA / 2.0).exp();
        let sd = mean * ((SIGMA * SIGMA).exp() - 1.0).sqrt();
        1.0 + self.sd * ((SIGMA * self.normal()).exp() - mean) / sd
    }

    /// The next of a first-order autoregression of variance 1.
    fn follow(&mut self, correlation: f64) -> f64 {
        let news = self.normal();
        let next = match self.state {
            None => news,
            Some(last) => correlation * last + (1.0 - correlation * correlation).sqrt() * news,
        };
        self.state = Some(next);
        next
    }

    /// A normal figure of mean 0 and variance 1, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (u, v): (f64, f64) = (self.generator.random(), self.generator.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

//! The instructions that requests take in programs of a study's own: in user space, by function.

use crate::Family;
use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    pub enum ProgramEnd("end") {
        Client = "client",
        Server = "server",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCounts {
    pub qemu: String,
    /// The processor that QEMU offers to programs.
    pub cpu: String,
    /// Requests of the shorter and of the longer runs, which differ in instructions by the requests between.
    pub requests: [u64; 2],
    pub cells: Vec<ProgramCell>,
    /// The cells that the study compares, baseline first, by their places.
    pub pairs: Vec<[usize; 2]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCell {
    pub program: String,
    pub family: Family,
    /// Whatever it differs in from other cells: `IPv4 http`.
    pub label: String,
    pub client: EndCounts,
    pub server: EndCounts,
}

/// The counts of all processes of a client or a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounts {
    /// Instructions of the shorter and of the longer run of each round.
    pub rounds: Vec<[u64; 2]>,
    /// Those that take most first. They add up to the differences of all rounds.
    pub functions: Vec<FunctionCount>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCount {
    pub name: String,
    /// The path of the file with its code; empty for code that was made in memory.
    pub file: String,
    /// The first and the last offset in the file of the blocks that have no symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offsets: Option<[u64; 2]>,
    /// Instructions of the longer runs less those of the shorter ones, over all rounds.
    pub instructions: i64,
}

impl ProgramCounts {
    /// Requests that a longer run has more.
    pub fn requests_between(&self) -> u64 {
        self.requests[1] - self.requests[0]
    }

    /// Instructions per request: the mean of all rounds.
    pub fn per_request(&self, counts: &EndCounts) -> f64 {
        let mut sum = 0.0;
        for round in &counts.rounds {
            sum += self.per_request_in(*round);
        }
        sum / counts.rounds.len() as f64
    }

    /// Half of the distance between the round with most instructions per request and the one with fewest.
    pub fn spread(&self, counts: &EndCounts) -> f64 {
        let mut most = f64::NEG_INFINITY;
        let mut least = f64::INFINITY;
        for round in &counts.rounds {
            most = most.max(self.per_request_in(*round));
            least = least.min(self.per_request_in(*round));
        }
        (most - least) / 2.0
    }

    /// Instructions that do not depend on the number of requests: start and end.
    pub fn start_and_end(&self, counts: &EndCounts) -> f64 {
        let shorter: f64 = counts.rounds.iter().map(|round| round[0] as f64).sum();
        shorter / counts.rounds.len() as f64 - self.per_request(counts) * self.requests[0] as f64
    }

    /// Instructions of a function per request.
    pub fn function_per_request(&self, counts: &EndCounts, function: &FunctionCount) -> f64 {
        function.instructions as f64 / (self.requests_between() as f64 * counts.rounds.len() as f64)
    }

    fn per_request_in(&self, [shorter, longer]: [u64; 2]) -> f64 {
        (longer as f64 - shorter as f64) / self.requests_between() as f64
    }
}

impl FunctionCount {
    /// The name of its file: two builds of a program have two folders.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }
}

impl ProgramCell {
    pub fn end_mut(&mut self, end: ProgramEnd) -> &mut EndCounts {
        match end {
            ProgramEnd::Client => &mut self.client,
            ProgramEnd::Server => &mut self.server,
        }
    }

    pub fn end(&self, end: ProgramEnd) -> &EndCounts {
        match end {
            ProgramEnd::Client => &self.client,
            ProgramEnd::Server => &self.server,
        }
    }
}

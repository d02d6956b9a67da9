//! Study files.

use crate::is_plain;
use stacklab_study::{Input, Plan, parse};
use std::collections::BTreeSet;

/// Longest text of all problems of a study file, bytes: twenty are shown, each with a few lines of the file.
const MAX_LENGTH: usize = 128 << 10;

/// A study file; after a zero byte the scale, and settings, one a line. Its problems are told in a bounded text without
/// control characters; without problems there is a plan with every trial once.
pub fn study(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (text, more) = text.split_once('\0').unwrap_or((&text, ""));
    let mut more = more.lines();
    let scale = more.next().filter(|scale| !scale.is_empty());
    let settings: Vec<String> = more.map(str::to_owned).collect();
    match parse(&Input { name: "study.toml", text, scale, settings: &settings }) {
        Ok(study) => {
            let plan = Plan::new(&study, 7);
            if plan.trials_per_block() <= 2000 {
                let block = plan.block(0);
                assert_eq!(block.len(), plan.trials_per_block());
                let places: BTreeSet<u32> = block.iter().map(|trial| trial.position).collect();
                assert_eq!(places.len(), block.len());
            }
        }
        Err(errors) => {
            let message = errors.to_string();
            assert!(errors.count() > 0 && !message.is_empty());
            assert!(message.len() <= MAX_LENGTH, "{} bytes of errors", message.len());
            assert!(is_plain(&message), "{message:?}");
        }
    }
}

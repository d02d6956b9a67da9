//! Which test a server of iperf3 means that says that a client ended one. In a file it says so at once, and the text
//! of the test, which it held in a buffer, may follow: then its words stand behind the test before.

use super::iperf3_tests::Iperf3Test;

/// What a server says of a client: that it has terminated, or unexpectedly closed the connection.
pub(super) struct ClientEnd<'a> {
    /// How many tests stand before it.
    pub(super) tests_before: usize,
    /// Its line, from 0.
    pub(super) place: usize,
    pub(super) said: &'a str,
}

/// Makes the test that a server means invalid, or both that it may mean. A test without its rows is the one.
pub(super) fn assign_end<'a>(tests: &mut [Iperf3Test<'a>], end: &ClientEnd<'a>, left_out: &mut Vec<String>) {
    let error = (end.place, end.said);
    let (before, behind) = tests.split_at_mut(end.tests_before);
    let above = before.last_mut();
    let below = behind.first_mut().filter(|test| test.is_server);
    let is_above = above.as_ref().is_some_and(|test| may_be_meant(test, end));
    let is_below = below.as_ref().is_some_and(|test| may_be_meant(test, end));
    let is_broken_above = above.as_ref().is_some_and(|test| test.find_missing_rows().is_some());
    let is_broken_below =
        !is_broken_above && below.as_ref().is_some_and(|test| test.find_missing_rows().is_some());
    if let Some(test) = above.filter(|_| is_above && !is_broken_below) {
        test.error.get_or_insert(error);
    }
    if let Some(test) = below.filter(|_| is_below && !is_broken_above) {
        test.error.get_or_insert(error);
    }
    if !is_above && !is_below {
        left_out.push(format!("line {}: {}", end.place + 1, end.said));
    }
}

/// Whether a server may mean a test: it has no rows of the whole test, or rows of a test that a client terminated.
fn may_be_meant(test: &Iperf3Test, end: &ClientEnd) -> bool {
    let has_terminated = end.said.contains("terminated") && test.is_complete() != Some(true);
    test.find_missing_rows().is_some() || has_terminated
}

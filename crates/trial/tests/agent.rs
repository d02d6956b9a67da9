//! An agent runs several requests concurrently and answers each when it is done.

mod support;

use support::{checks, thread_agent};

#[test]
fn agent_sends_and_receives_twice_at_once() {
    checks::does_several_things_at_once(thread_agent);
}

#[test]
fn repeated_request_is_done_once() {
    checks::does_once_what_is_asked_twice(thread_agent());
}

#[test]
fn requests_under_way_notice_that_the_agent_is_gone() {
    checks::is_known_as_gone(thread_agent());
}

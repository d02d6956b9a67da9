//! An agent runs several requests concurrently and answers each when it is done.

mod support;

use support::{checks, thread_agent};

#[test]
fn one_agent_sends_twice_and_receives_twice_at_once_and_answers_meanwhile() {
    checks::does_several_things_at_once(thread_agent);
}

#[test]
fn a_request_that_comes_twice_is_done_once_and_a_failure_has_its_own_id() {
    checks::does_once_what_is_asked_twice(thread_agent());
}

#[test]
fn an_agent_that_is_gone_is_known_as_gone_by_every_request_under_way() {
    checks::is_known_as_gone(thread_agent());
}

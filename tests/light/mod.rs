//! Tests that mostly wait: they run beside others, one at a time.

mod bad_input;
mod by_hand;
mod chaos;
mod commands;
mod documented;
mod firewalls;
mod hardening;
mod import;
mod interrupted;
mod kept_record;
mod listening_agent;
mod looking;
mod page_access;
mod path;
mod privileges;
mod prometheus;
mod quickstart;
mod remote;
mod remote_wifi;
mod services;
mod stamp;
mod starter;
mod survival;
mod tls;
mod unprivileged;
mod zones;

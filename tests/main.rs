//! The end-to-end tests: the real program on real testbeds, one module for each promised property. They need root and
//! measure; `make test` runs each in its own process (scripts/run-tests). They form one program,
//! because each test links everything.

mod bad_input;
mod by_hand;
mod capture;
mod chaos;
mod commands;
mod compare;
mod directions;
mod endurance;
mod frugality;
mod hardening;
mod impairment;
mod interleaved;
mod iperf3_client;
mod iperf3_server;
mod kept_record;
mod known_truth;
mod listening_agent;
mod looking;
mod measure;
mod mechanisms;
mod metrics;
mod page_access;
mod privileges;
mod published;
mod remote;
mod routed_systems;
mod same_arm;
mod services;
mod strays;
mod support;
mod survival;
mod systems;
mod tls;
mod truth;
mod tuning;
mod unprivileged;
mod wifi;
mod wifi_capture;
mod wifi_medium;
mod wifi_saturation;
mod wifi_study;
mod zones;

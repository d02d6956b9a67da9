//! NAT and overlays between two routers: on this kernel, and in a guest what this kernel may lack. The tests need root,
//! nft and the image linux-6.1.

use super::mechanisms::{FAST, Offered, SLOW, check_fragments, filled};
use crate::support::program::{Program, code, require_root};
use crate::support::records::{figure, runs};
use crate::support::studies::TestStudy;
use stacklab_model::{Factor, Mechanism, Metric, RunRecord, Setup};
use stacklab_store::Record;

/// The sources that the receiver sees are checked when the testbed is built; here what stands on the middle link.
#[test]
fn nat_on_this_kernel_fits_the_header_model() {
    check_fragments(&filled(None, FAST, Offered::Paced, &[1536], is_nat).0);
    let (_, _, seen) = filled(None, FAST, Offered::Flood, &[128, 1408], is_nat);
    for headers in [
        "ipv4 as ipv4 198.18.0.1 > 198.18.2.1 / udp",
        "ipv6 as ipv6 2001:2:0:ffff::1 > 2001:2:0:2::1 / udp",
        "ipv6 as ipv6 2001:2:0:101::1 > 2001:2:0:2::1 / udp",
        "(nftables, stateful)",
    ] {
        assert!(seen.contains(headers), "{headers}: {seen}");
    }
}

#[test]
fn vxlan_on_this_kernel_fits_the_header_model() {
    check_fragments(&filled(None, FAST, Offered::Paced, &[1536], is_vxlan).0);
    let (_, _, seen) = filled(None, FAST, Offered::Flood, &[128, 1408], is_vxlan);
    for headers in [
        "ipv4 198.18.0.1 > 198.18.0.2 / udp / vxlan / ethernet / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / udp / vxlan / ethernet / ipv4 198.18.1.1 > 198.18.2.1 / udp",
    ] {
        assert!(seen.contains(headers), "{headers}: {seen}");
    }
}

#[test]
fn segments_on_this_kernel_fit_the_header_model() {
    check_fragments(&filled(None, FAST, Offered::Paced, &[1536], is_srv6).0);
    let (_, _, seen) = filled(None, FAST, Offered::Flood, &[128, 1408], is_srv6);
    for said in [
        "ipv4 as ipv6 2001:2:0:ffff::1 > 2001:2:0:f2::d4 / segment routing / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv6 as ipv6 2001:2:0:ffff::1 > 2001:2:0:f2::d6 / segment routing / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "2001:2:0:f2::e / segment routing (2 segments, 1 left) / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "2001:2:0:f2::e / segment routing (2 segments, 1 left) / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "a larger packet vanishes without an answer, so the testbed sets the path MTU",
    ] {
        assert!(seen.contains(said), "{said}: {seen}");
    }
}

#[test]
fn what_this_kernel_may_lack_is_carried_in_linux_6_1() {
    let (_, _, seen) = filled(Some("linux-6.1"), SLOW, Offered::Paced, &[1024], may_be_lacking);
    for headers in [
        "ipv4 198.18.0.1 > 198.18.0.2 / udp / geneve / ethernet / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv6 as ipv6 2001:2:0:101::1 > 2001:2:0:2::1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / udp / gue / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / udp / gue / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / udp / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / udp / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv6 2001:2:0:ffff::61 > 2001:2:0:ffff::62 / udp / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv4 as ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / esp",
        "gre4-esp, seen on the middle link: ipv4 as ipv4 198.18.0.1 > 198.18.0.2 / esp, path MTU 1442; ipv6 as ipv4",
        "gre6-esp, seen on the middle link: ipv4 as ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / esp, path MTU 1422; ipv6 as ipv6",
        "ipv4 as ipv6 2001:2:0:ffff::1 > 2001:2:0:f2::d46 / segment routing / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv6 as ipv6 2001:2:0:ffff::1 > 2001:2:0:f2::d46 / segment routing / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
    ] {
        assert!(seen.contains(headers), "{headers}: {seen}");
    }
}

/// The customer's ports are checked by the far router, which drops others.
#[test]
fn softwires_are_carried_inside_linux_6_1() {
    let (_, _, seen) =
        filled(Some("linux-6.1"), SLOW, Offered::Paced, &[1024], |mechanism| mechanism.sharing().is_some());
    for headers in [
        "ds-lite (nftables, stateful), seen on the middle link",
        "ipv4 as ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv4 as ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / ipv4 198.18.67.18 > 198.18.2.1 / udp",
        "map-t (tayga and nftables, stateful), seen on the middle link",
        "ipv4 as ipv6 2001:2:0:3400:0:c612:4312:34 > 2001:2:0:64::c612:201 / udp",
    ] {
        assert!(seen.contains(headers), "{headers}: {seen}");
    }
}

const OFFLOADED: [&str; 3] = ["native", "nat66", "nptv6"];

/// With a flowtable, packets of a known connection pass none of the rules that cost others most of their time.
#[test]
fn a_flowtable_forwards_past_rules_in_linux_6_1() {
    require_root();
    let program = Program::new();
    program.write("flows.toml", write_flow_study().text());
    program.run(&["run", "flows.toml", "--in-vm=linux-6.1", "--out", "f.stacklab"]).expect(code::DONE);
    let path = program.work().join("f.stacklab");
    let all = runs(&path);
    let seen = Record::read(&path).unwrap().campaign().unwrap().testbed_description;
    assert_eq!(seen.matches(", known connections by a flowtable on router1, seen").count(), 3, "{seen}");
    for mechanism in OFFLOADED {
        let [slow, fast] = ["off", "on"].map(|level| find_best_rate(&all, mechanism, level));
        println!("note: {mechanism}: {slow:.0} messages/s past 1000 rules, {fast:.0} with a flowtable");
        assert!(fast > 2.0 * slow, "{mechanism}: {fast} messages/s with a flowtable, {slow} without");
    }
}

fn write_flow_study() -> TestStudy {
    TestStudy::new("Known connections past a thousand rules")
        .topology("routed")
        .mechanisms(&OFFLOADED)
        .levels(Factor::Rules, [1000])
        .levels(Factor::FlowOffload, ["off", "on"])
        .family("ipv6")
        .transports(&["udp"])
        .sizes(&[128])
        .stream(&["message_rate"])
        .time("200ms")
        .warmup("50ms")
        .blocks(2)
}

/// Messages per second of the best run with these levels.
fn find_best_rate(all: &[RunRecord], mechanism: &str, offload: &str) -> f64 {
    let mut best = 0.0_f64;
    for run in all {
        let cell = &run.trial.cell;
        if cell.level(Factor::Mechanism) == mechanism && cell.level(Factor::FlowOffload) == offload {
            best = best.max(figure(run, Metric::MessageRate));
        }
    }
    best
}

#[test]
fn guest_without_flowtables_is_refused() {
    let program = Program::new();
    program.write("flows.toml", write_flow_study().text());
    let refused = program.run(&["run", "flows.toml", "--in-vm=uml-full"]).expect(code::TESTBED).stderr;
    let advice = "(flowtables): stacklab image get linux-6.1, then --in-vm=linux-6.1";
    assert!(refused.contains(advice), "{refused}");
}

fn may_be_lacking(mechanism: Mechanism) -> bool {
    const LACKING: [Setup; 6] =
        [Setup::Geneve, Setup::Gue, Setup::Fou, Setup::Esp, Setup::GreInEsp, Setup::SegmentsToTable];
    ["nat44", "nptv6"].contains(&mechanism.name())
        || mechanism.tunnel().is_some_and(|tunnel| LACKING.contains(&tunnel.device.setup))
}

fn is_nat(mechanism: Mechanism) -> bool {
    mechanism.nat().is_some()
}

fn is_vxlan(mechanism: Mechanism) -> bool {
    mechanism.name().starts_with("vxlan")
}

fn is_srv6(mechanism: Mechanism) -> bool {
    mechanism.tunnel().is_some_and(|tunnel| tunnel.device.setup == Setup::Segments)
}

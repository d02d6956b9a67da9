//! Several customers before one far router: on this kernel, and inside linux-6.1 those behind shared addresses. The
//! tests need root, nft and the image linux-6.1.

use super::mechanisms::SLOW;
use crate::support;

use stacklab_model::{Factor, Mechanism, Metric, Role, RunRecord};
use stacklab_store::Record;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use support::program::{Program, code, require_root};
use support::records::{figure, runs, side};
use support::routed::model;
use support::studies::TestStudy;

const CUSTOMERS: u32 = 2;

struct Measured {
    runs: Vec<RunRecord>,
    /// What the record says of the testbeds.
    testbeds: String,
}

fn measure_customers(mechanisms: &[&str], families: &[&str], more: &[&str]) -> Measured {
    require_root();
    let study = TestStudy::new("Two customers of one provider")
        .topology("routed")
        .rate(&format!("{SLOW} Mbit/s"))
        .mechanisms(mechanisms)
        .levels(Factor::Clients, [CUSTOMERS])
        .levels(Factor::Family, families.iter().copied())
        .transports(&["udp", "tcp"])
        .size_of("write")
        .sizes(&[1024])
        .stream(&["throughput", "link_bytes", "link_bytes_beyond", "fairness"])
        .set_of_probe("message_rate", "link")
        .time("400ms")
        .warmup("200ms")
        .interval("100ms")
        .blocks(2);
    let program = Program::new();
    program.write("customers.toml", study.text());
    let command = [&["run", "customers.toml", "--out", "c.stacklab"], more].concat();
    program.run(&command).expect(code::DONE);
    let path = program.work().join("c.stacklab");
    let testbeds = Record::read(&path).unwrap().campaign().unwrap().testbed_description;
    Measured { runs: runs(&path), testbeds }
}

/// Where each flow of a run came from, after what every run must have.
fn check_run(run: &RunRecord) -> Vec<SocketAddr> {
    let receiver = side(run, Role::Receiver);
    assert!(receiver.flow_bytes.iter().all(|bytes| *bytes > 0), "{}: {:?}", run.trial, receiver.flow_bytes);
    let sources: Vec<SocketAddr> = receiver.flow_sources.iter().flatten().copied().collect();
    assert_eq!(sources.len(), CUSTOMERS as usize, "{}: one of each flow", run.trial);
    assert_eq!(sources.iter().collect::<BTreeSet<_>>().len(), sources.len(), "{}: {sources:?}", run.trial);
    if run.trial.cell.transport.to_string() == "udp" {
        // Of both middle links together.
        let (_, bytes) = model(run, SLOW);
        assert_eq!(figure(run, Metric::LinkBytes), bytes, "{}", run.trial);
    }
    sources
}

#[test]
fn customers_on_this_kernel_have_their_own_links() {
    let Measured { runs, testbeds } = measure_customers(&["native", "nat44"], &["ipv4", "ipv6"], &[]);
    assert!(testbeds.contains("customer 2's ipv4 as ipv4 198.18.161.1 > 198.18.2.1 / udp"), "{testbeds}");
    assert_eq!(runs.len(), 12, "two blocks, and nat44 carries one family");
    for run in &runs {
        let hosts: Vec<String> = check_run(run).iter().map(|source| source.ip().to_string()).collect();
        let expected = match (Mechanism::of(&run.trial.cell), run.trial.cell.family.name()) {
            (Mechanism::Native, "ipv4") => ["198.18.1.1", "198.18.161.1"],
            (Mechanism::Native, _) => ["2001:2:0:1::1", "2001:2:0:a1::1"],
            _ => ["198.18.0.1", "198.18.129.1"],
        };
        assert_eq!(hosts, expected, "{}", run.trial);
    }
}

/// The customers have the same private addresses, and the receiver sees one address of both.
#[test]
fn customers_of_softwires_share_an_address() {
    let mechanisms = ["ds-lite", "lw4o6", "map-e"];
    let Measured { runs, testbeds } = measure_customers(&mechanisms, &["ipv4"], &["--in-vm=linux-6.1"]);
    for headers in [
        "ipv4 as ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "customer 2's ipv4 as ipv6 2001:2:0:fe01::1 > 2001:2:0:fe01::2 / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "customer 2's ipv4 as ipv6 2001:2:0:fe01::1 > 2001:2:0:fe01::2 / ipv4 198.18.67.18 > 198.18.2.1 / udp",
    ] {
        assert!(testbeds.contains(headers), "{headers}: {testbeds}");
    }
    assert_eq!(runs.len(), 4 * mechanisms.len());
    for run in &runs {
        let sources = check_run(run);
        let [one, other] = [sources[0].port(), sources[1].port()];
        let mechanism = Mechanism::of(&run.trial.cell);
        let shared = if mechanism == Mechanism::DsLite { "198.18.2.254" } else { "198.18.67.18" };
        assert!(sources.iter().all(|source| source.ip().to_string() == shared), "{}: {sources:?}", run.trial);
        match mechanism {
            Mechanism::Lw4o6 => assert_eq!([one / 1024, other / 1024], [1, 2], "{}", run.trial),
            // RFC 7597, appendix A: the number is in the bits before the last two.
            Mechanism::MapEncapsulation => {
                assert_eq!([one >> 2 & 0xff, other >> 2 & 0xff], [0x34, 0x35], "{}", run.trial);
            }
            _ => {}
        }
    }
}

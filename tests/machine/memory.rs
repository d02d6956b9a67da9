//! What sockets take of the kernel's memory. The test needs root, and the machine for itself: the sockets of all hosts
//! are in one count.

use crate::support::program::{Program, code, require_root};
use crate::support::records::{figure, runs};
use crate::support::studies::TestStudy;
use stacklab_model::{Family, Metric, RunRecord, Transport};

#[test]
fn sockets_of_both_families_have_a_size() {
    require_root();
    let program = Program::new();
    let study = TestStudy::new("What sockets take")
        .families()
        .transports(&["udp", "tcp"])
        .sizes(&[1400])
        .probe("sockets", &["memory_per_socket", "memory_per_full_socket"])
        .set_of_probe("pairs", 1000)
        .blocks(3)
        .compare_families();
    program.write("memory.toml", study.text());
    let outcome = program.run(&["run", "memory.toml", "--out", "r.stacklab"]).expect(code::DONE);
    assert!(outcome.stdout.contains("memory per socket"), "{outcome}");
    let all = runs(&program.work().join("r.stacklab"));
    for family in Family::ALL {
        let udp = median(&all, *family, Transport::Udp, Metric::MemoryPerSocket);
        let tcp = median(&all, *family, Transport::Tcp, Metric::MemoryPerSocket);
        // struct sock of TCP is twice that of UDP, and each has a file and an inode of 700 bytes and more.
        assert!((1000.0..6000.0).contains(&udp), "{family}: {udp} bytes for each UDP socket");
        assert!((1.2 * udp..12_000.0).contains(&tcp), "{family}: {tcp} bytes for each TCP socket, UDP {udp}");
        for transport in Transport::ALL {
            let full = median(&all, *family, *transport, Metric::MemoryPerFullSocket);
            assert!(full > 50_000.0, "{family} {transport}: {full} bytes in full queues");
        }
    }
}

fn median(all: &[RunRecord], family: Family, transport: Transport, metric: Metric) -> f64 {
    let mut figures = Vec::new();
    for run in all {
        if run.trial.cell.family == family && run.trial.cell.transport == transport {
            figures.push(figure(run, metric));
        }
    }
    assert_eq!(figures.len(), 3, "{family} {transport}");
    figures.sort_by(f64::total_cmp);
    figures[1]
}

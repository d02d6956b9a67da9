//! `stacklab eyeballs`: its page.

use crate::support;

use support::program::{Program, code, require_root, require_tool};

/// All networks: both families, eight faults of each family's path, three of each record's answer, one record alone, a
/// dead address of each family, and NAT64.
const NETWORKS: usize = 1 + 2 * 8 + 2 * 3 + 2 + 2 + 1;

#[test]
fn the_page_has_a_timeline_of_each_network() {
    require_root();
    require_tool("curl", "curl");
    let program = Program::new();
    let options =
        ["eyeballs", "--scenarios", "all", "--repeat", "1", "--limit", "2", "--format", "html", "--"];
    let curl = ["curl", "-sS", "-o", "/dev/null", "http://{host}/?<script>"];
    let page = program.run(&[&options[..], &curl].concat()).expect(code::DONE).stdout;
    let sections: Vec<&str> = page.split("<section id=").skip(1).collect();
    assert_eq!(sections.len(), NETWORKS, "{page}");
    for section in &sections {
        assert_eq!(section.matches("<svg xmlns=").count(), 1, "{section}");
        assert!(section.contains(">DNS query AAAA</text>"), "{section}");
        assert!(section.contains(">end of the program</text>"), "{section}");
    }
    let dropped = sections.iter().find(|section| section.starts_with("\"ipv6-drop\"")).unwrap();
    assert!(dropped.contains("<h3>IPv6 is dropped: IPv4 after "), "{dropped}");
    assert!(dropped.contains(">IPv6, 2001:db8:2::1</text>"), "{dropped}");
    assert!(dropped.contains("no answer</text>"), "{dropped}");
    assert!(!page.contains("<script"), "the command's words stay text");
}

//! `[factors]`: levels and the matrix of cells.

use crate::parse::tests::{assert_mistakes, errors, study, with};
use stacklab_model::Factor;

#[test]
fn too_large_a_matrix_is_refused_before_it_is_made() {
    let sizes: Vec<String> = (32..1_000).map(|size| size.to_string()).collect();
    let replicas: Vec<String> = (0..1_000).map(|replica| format!("\"{replica}\"")).collect();
    let levels = format!("size = [{}]\nreplica = [{}]", sizes.join(","), replicas.join(","));
    let errors = errors(&with("size = [128, 1408]", &levels)).to_string();
    assert!(errors.contains("the factors make 3872000 cells"), "{errors}");
}

#[test]
fn settings_are_crossed_and_keep_levels_as_written() {
    let text = with("size = [128, 1408]", "size = [128]\nmtu = [9_000, 1500]\nio = [\"auto\", \"send\"]")
        .replace("\"tcp\", \"udp\"", "\"tcp\"")
        .replace(
            "[probe.stream]",
            "nodelay = [true, false]\ncongestion_control = [\"reno\"]\n[probe.stream]",
        );
    let study = study(&text);
    assert_eq!(study.cells.len(), 2 * 2 * 2 * 2);
    let first = &study.cells[0];
    assert_eq!(
        first.to_string(),
        "ipv4 tcp 128 B payload io=auto mtu=9000 nodelay=true congestion_control=reno"
    );
    assert_eq!(study.link_config.mtu_of(first), 9000);
    let distinct: std::collections::BTreeSet<_> = study.cells.iter().collect();
    assert_eq!(distinct.len(), study.cells.len());
}

#[test]
fn services_are_a_setting_of_their_own_language() {
    let study = study(&set_services("\"none\", \"dns+directory\""));
    let labs = ["none", "dns+directory"].map(|name| ("namespace".parse().unwrap(), name.parse().unwrap()));
    assert_eq!(study.labs(), labs);
    assert_eq!(study.systems().len(), 1);
    for (wrong, said) in [
        ("\"dns+directry\"", "did you mean `directory`?"),
        ("\"web\"", "there is no service `web`"),
        ("\"dns+dns\"", "the service `dns` is named twice"),
        ("53", "expected \"none\", or names joined by +"),
    ] {
        let errors = errors(&set_services(wrong)).to_string();
        assert!(errors.contains(said) && errors.contains("study.toml:"), "{said} is not in\n{errors}");
    }
    let guests = set_services("\"dns\"").replace("services =", "os = [\"gvisor\"]\nservices =");
    let errors = errors(&guests).to_string();
    assert!(errors.contains("`services` can be set between namespaces only"), "{errors}");
}

fn set_services(levels: &str) -> String {
    with("size = [128, 1408]", &format!("size = [128]\nservices = [{levels}]"))
}

#[test]
fn a_fixed_setting_holds_wherever_it_can() {
    let text = with("size = [128, 1408]", "size = [128]\nmss = [1200]\nflow_label = [7]\nio = [\"gso\"]");
    let cells: Vec<String> = study(&text).cells.iter().map(ToString::to_string).collect();
    assert_eq!(
        cells,
        [
            "ipv4 tcp 128 B payload mss=1200",
            "ipv6 tcp 128 B payload mss=1200 flow_label=7",
            "ipv4 udp 128 B payload io=gso",
            "ipv6 udp 128 B payload io=gso flow_label=7",
        ]
    );
}

/// Datagrams of 128 bytes at these kinds of sockets.
fn at_sockets(levels: &str) -> String {
    with("[\"tcp\", \"udp\"]", "[\"udp\"]")
        .replace("size = [128, 1408]", &format!("size = [128]\nsocket = [{levels}]"))
}

#[test]
fn mapped_addresses_are_of_ipv4() {
    let both = at_sockets("\"native\", \"ipv4-mapped\"");
    for (text, expected) in [
        (
            &both,
            &[
                "ipv4 udp 128 B payload socket=native",
                "ipv4 udp 128 B payload socket=ipv4-mapped",
                "ipv6 udp 128 B payload socket=native",
            ][..],
        ),
        (
            &at_sockets("\"ipv4-mapped\""),
            &["ipv4 udp 128 B payload socket=ipv4-mapped", "ipv6 udp 128 B payload"][..],
        ),
    ] {
        let cells: Vec<String> = study(text).cells.iter().map(ToString::to_string).collect();
        assert_eq!(cells, expected);
    }
    let said = errors(&both.replace("[\"ipv4\", \"ipv6\"]", "[\"ipv6\"]")).to_string();
    assert!(
        said.contains("`socket` needs ipv4") && said.contains("add \"ipv4\" to factors.family"),
        "{said}"
    );
}

#[test]
fn a_mistake_in_factors_is_named() {
    assert_mistakes(&[
        (with("[\"ipv4\", \"ipv6\"]", "\"ipv4\""), &["for `factors.family`", "a list in brackets"]),
        (with("[\"ipv4\", \"ipv6\"]", "[]"), &["for `factors.family`", "at least one item"]),
        (with("[\"payload\"]", "[\"payloda\"]"), &["no size_of `payloda`", "did you mean `payload`?"]),
        (with("[\"tcp\", \"udp\"]", "[\"udp\", \"udp\"]"), &["`udp` occurs twice in `factors.transport`"]),
        (with("[128, 1408]", "[128, 1408, 128]"), &["`128` occurs twice in `factors.size`", "first here"]),
        (with("[128, 1408]", "[0]"), &["for `factors.size`", "a whole number from 1 to"]),
        (with("[128, 1408]", "[-128]"), &["for `factors.size`", "a whole number from 1 to"]),
        (with("[128, 1408]", "[2_000_000]"), &["for `factors.size`", "to 1048576"]),
        (
            with("size = [128, 1408]", "size = [128]\nreplica = [\"\"]"),
            &["for `factors.replica`", "not empty"],
        ),
    ]);
}

#[test]
fn a_mistake_in_a_setting_is_named() {
    assert_mistakes(&[
        (with("size =", "io = [\"sned\"]\nsize ="), &["no I/O path `sned`", "did you mean `send`?"]),
        (with("size =", "mtu = [1279]\nsize ="), &["for `factors.mtu`", "from 1280 to 65535"]),
        (with("size =", "dscp = [64]\nsize ="), &["for `factors.dscp`", "from 0 to 63"]),
        (with("size =", "nodelay = [1]\nsize ="), &["for `factors.nodelay`", "true or false"]),
        (with("size =", "mss = [87]\nsize ="), &["for `factors.mss`", "from 88 to"]),
        (
            with("size =", "nodelay = [true, true]\nsize ="),
            &["`true` occurs twice in `factors.nodelay`", "first here"],
        ),
        (
            with("size =", "kernel_pacing = [true]\nsize ="),
            &["no schedule for the kernel to keep", "add message_rate to probe.stream"],
        ),
        (
            with("size =", "nodelay = [true, false]\nsize ="),
            &["`nodelay` needs tcp", "together with this", "give factors.nodelay one level"],
        ),
        (with("size =", "io = [\"send\", \"gso\"]\nsize ="), &["io `gso` needs udp", "together with this"]),
        (
            with("\"tcp\", \"udp\"]", "\"udp\"]\nio = [\"zerocopy\"]"),
            &["io `zerocopy` needs tcp", "the only transport", "add \"tcp\" to factors.transport"],
        ),
        (
            with("size =", "flow_label = [1, 2]\nsize ="),
            &["`flow_label` needs ipv6", "leave this family out"],
        ),
        (
            with("size =", "mtu = [9000, 1280]\nsize =").replace("1408", "1220"),
            &["1220 bytes do not fit one TCP segment over ipv6 at an MTU of 1280", "at most 1208"],
        ),
        (
            with("size =", "mss = [1441]\nsize ="),
            &["segments of 1441 bytes do not fit the link's MTU", "at most 1440"],
        ),
        (
            with("size =", "mss = [536]\nsize ="),
            &["1408 bytes do not fit one TCP segment at an MSS of 536", "at most 524"],
        ),
        (
            with("size = [128, 1408]", "flows = [1, 10_000]\nsize_of = [\"write\"]\nsize = [100_000]")
                .replace("size_of = [\"payload\"]\n", "")
                .replace("\"tcp\", \"udp\"", "\"tcp\""),
            &["10000 flows with messages of 100000 bytes", "at most 2684 flows"],
        ),
        (
            with("size =", "congestion_control = [\"a_name_that_is_long\"]\nsize ="),
            &["no congestion control is called `a_name_that_is_long`", "at most 15"],
        ),
    ]);
}

/// A study of both families over TCP at 128 bytes, with other cells beside.
fn beside(also: &str) -> String {
    let text = with("size = [128, 1408]", "size = [128]").replace("\"tcp\", \"udp\"", "\"tcp\"");
    format!("{text}\n{also}")
}

#[test]
fn cells_can_be_added_beside_the_matrix() {
    let buffers = "[[include]]\nfamily = [\"ipv6\"]\nsize = [64, 128]\nreceive_buffer = [65536, 212992]";
    let study = study(&beside(&format!(
        "{buffers}\n[[comparison]]\nfactor = \"receive_buffer\"\nbaseline = 65536\ncandidate = 212992\nmetrics = [\"throughput\"]"
    )));
    let cells: Vec<String> = study.cells.iter().map(ToString::to_string).collect();
    assert_eq!(
        cells,
        [
            "ipv4 tcp 128 B payload",
            "ipv6 tcp 128 B payload",
            "ipv6 tcp 64 B payload receive_buffer=65536",
            "ipv6 tcp 64 B payload receive_buffer=212992",
            "ipv6 tcp 128 B payload receive_buffer=65536",
            "ipv6 tcp 128 B payload receive_buffer=212992",
        ]
    );
    let asked: Vec<_> =
        study.questions().into_iter().filter(|question| question.factor == Factor::ReceiveBuffer).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|question| question.baseline.same_but(&question.candidate, question.factor)));
}

#[test]
fn what_is_wrong_beside_the_matrix_is_said_there() {
    for (also, title) in [
        ("[[include]]\nsize = [128]", "this adds no cells"),
        ("[[include]]\nsize = [1440]", "1440 bytes do not fit one TCP segment over ipv6"),
        ("[[include]]\nos = [\"gvisor\"]", "`include.os` is not possible"),
        ("[[include]]\nroutes = [10]", "`factors.routes` needs two routers"),
        ("[[include]]\nsizes = [128]", "there is no key `include.sizes`"),
        ("[include]\nsize = [128]", "expected tables in a list"),
        ("[[include]]\nkernel_pacing = [true]", "kernel_pacing"),
    ] {
        let errors = errors(&beside(also));
        assert_eq!(errors.count(), 1, "{also}: {errors}");
        assert!(errors.to_string().contains(title), "{also}: {errors}");
    }
    let sizes: Vec<String> = (32..5_000).map(|size| size.to_string()).collect();
    let sets = ["a", "b", "c"]
        .map(|replica| format!("[[include]]\nsize = [{}]\nreplica = [\"{replica}\"]", sizes.join(",")));
    let errors = errors(&beside(&sets.join("\n")).replace("[\"tcp\"]", "[\"udp\"]")).to_string();
    assert!(errors.contains("the factors make 9936 cells"), "{errors}");
}

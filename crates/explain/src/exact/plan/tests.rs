//! Plans, and requests for them.

use super::*;
use stacklab_model::{Family, Mechanism};

fn families(probes: &[ExactProbe], sizes: &[u32], path: ExactPath, rules: u32) -> Result<ExactPlan, String> {
    let arms = combine_arms([Family::Ipv4, Family::Ipv6], [path, path], [rules, rules]);
    ExactPlan::of(probes, sizes, arms)
}

#[test]
fn plan_reads_back_as_written() {
    let plan =
        families(&[ExactProbe::Udp, ExactProbe::Connect], &[128, 1408], ExactPath::Loopback, 0).unwrap();
    assert_eq!(
        plan.to_string(),
        "udp:ipv4@loopback/128*0+ipv6@loopback/128*0,udp:ipv4@loopback/1408*0+ipv6@loopback/1408*0,\
         connect:ipv4@loopback/0*0+ipv6@loopback/0*0"
    );
    assert_eq!(plan.to_string().parse(), Ok(plan.clone()));
    assert_eq!(plan.phases(), 30);
    let places = [0, 1, 10, 29, 30].map(|phases| plan.describe_place(phases));
    assert_eq!(places[0], "booting the emulated machine for 3 cells");
    assert_eq!(places[1..3], ["cell 1 of 3: udp, 128 B", "cell 2 of 3: udp, 1408 B"]);
    assert_eq!(places[3..], ["cell 3 of 3: connect", "cell 3 of 3: connect"]);
    let paths = [Mechanism::Native, Mechanism::SixInFour].map(ExactPath::Routed);
    let arms = combine_arms([Family::Ipv6, Family::Ipv6], paths, [9, 9]);
    let arms = arms.map(|arm| ExactArm { size: 64, ..arm });
    let plan = ExactPlan::new(vec![ExactPair { probe: ExactProbe::Tcp, arms }]).unwrap();
    assert_eq!(plan.to_string(), "tcp:ipv6@native/64*9+ipv6@6in4/64*9");
    assert_eq!(plan.to_string().parse(), Ok(plan));
    for wrong in [
        "",
        "udp",
        "udp:ipv4@loopback/1*0",
        "sctp:ipv4@link/1*0+ipv6@link/1*0",
        "udp:ipv4@link/1*0+ipv6@link/1*0,",
        "udp:ipv4@x/1*0+ipv6@link/1*0",
    ] {
        assert!(wrong.parse::<ExactPlan>().is_err(), "{wrong}");
    }
}

#[test]
fn refuses_what_cannot_be_counted() {
    for size in [0, 16_385] {
        let error = families(&[ExactProbe::Udp], &[size], ExactPath::Loopback, 0).unwrap_err();
        assert!(error.contains("1 to 16384 bytes"), "{error}");
    }
    let many: Vec<u32> = (1..=50).collect();
    let error = families(&[ExactProbe::Udp], &many, ExactPath::Loopback, 0).unwrap_err();
    assert!(error.contains("fewer sizes"), "{error}");
    let tunnel = ExactPath::Routed(Mechanism::SixInFour);
    let error = families(&[ExactProbe::Udp], &[64], tunnel, 0).unwrap_err();
    assert_eq!(error, "6in4 does not carry ipv4");
    for (path, rules, why) in
        [(ExactPath::Loopback, 1, "--path link"), (ExactPath::Link, 10_001, "at most 10000")]
    {
        let error = families(&[ExactProbe::Udp], &[64], path, rules).unwrap_err();
        assert!(error.contains(why));
    }
}

fn udp() -> ExactRequest {
    ExactRequest { probes: vec![ExactProbe::Udp], sizes: vec![128], ..ExactRequest::default() }
}

fn print_plan(request: &ExactRequest) -> String {
    request.plan().unwrap().to_string()
}

#[test]
fn arms_differ_in_one_factor() {
    assert_eq!(print_plan(&udp()), "udp:ipv4@loopback/128*0+ipv6@loopback/128*0");
    let link = Some(ExactPath::Link);
    assert_eq!(
        print_plan(&ExactRequest { path: link, rules: vec![0, 10], family: Some(Family::Ipv4), ..udp() }),
        "udp:ipv4@link/128*0+ipv4@link/128*10"
    );
    let factor = Some(Factor::Mechanism);
    assert_eq!(print_plan(&ExactRequest { factor, ..udp() }), "udp:ipv6@native/128*0+ipv6@nat64/128*0");
    let levels = vec!["native".to_owned(), "4in6".to_owned()];
    assert_eq!(
        print_plan(&ExactRequest { factor, levels, ..udp() }),
        "udp:ipv4@native/128*0+ipv4@4in6/128*0"
    );
    let factor = Some(Factor::Size);
    assert_eq!(print_plan(&ExactRequest { factor, ..udp() }), "udp:ipv6@loopback/64*0+ipv6@loopback/1408*0");
    let sockets = ExactRequest { factor: Some(Factor::Socket), ..udp() };
    assert_eq!(print_plan(&sockets), "udp:ipv4@loopback/128*0+ipv4@loopback/128*0:ipv4-mapped");
    assert_eq!(print_plan(&sockets).parse(), sockets.plan());
}

#[test]
fn tables_are_compared_in_each_family() {
    let routes = ExactRequest { factor: Some(Factor::Routes), ..udp() };
    let text = "udp:ipv4@native/128*0+ipv4@native/128*0!100000!off,udp:ipv6@native/128*0+ipv6@native/128*0!100000!off";
    assert_eq!(print_plan(&routes), text);
    assert_eq!(text.parse(), routes.plan());
    let levels = vec!["0".to_owned(), "5000".to_owned()];
    let family = Some(Family::Ipv6);
    let conntrack = ExactRequest { factor: Some(Factor::Conntrack), levels, family, ..udp() };
    assert_eq!(print_plan(&conntrack), "udp:ipv6@native/128*0!0!0+ipv6@native/128*0!0!5000");
    let rules = ExactRequest { factor: Some(Factor::Rules), family, ..udp() };
    assert_eq!(print_plan(&rules), "udp:ipv6@native/128*0+ipv6@native/128*0!0!off!1000!list");
    assert_eq!(print_plan(&rules).parse(), rules.plan());
    for wrong in ["!0", "!0!off!9", "!0!off!9!list!", "!0!off!9!list!9", "!0!off!9!tree"] {
        let text = format!("udp:ipv6@native/128*0+ipv6@native/128*0{wrong}");
        assert!(text.parse::<ExactPlan>().is_err(), "{wrong}");
    }
    let [before, after] = conntrack.plan().unwrap().pairs[0].arms.map(|arm| arm.conntrack);
    assert_eq!([before, after], [Tracking::On(0), Tracking::On(5000)]);
}

#[test]
fn refuses_options_that_contradict_each_other() {
    let mechanism = Some(Factor::Mechanism);
    let tunnels = vec!["6in4".to_owned(), "4in6".to_owned()];
    let unknown = vec!["native".to_owned(), "x".to_owned()];
    for (request, why) in [
        (ExactRequest { rules: vec![1, 2, 3], ..udp() }, "one number, or two"),
        (ExactRequest { rules: vec![1, 2], factor: mechanism, ..udp() }, "leave out --factor"),
        (ExactRequest { family: Some(Family::Ipv4), ..udp() }, "--family is for arms of one family"),
        (ExactRequest { factor: mechanism, path: Some(ExactPath::Link), ..udp() }, "leave out --path"),
        (ExactRequest { factor: mechanism, levels: tunnels, ..udp() }, "no family in common"),
        (ExactRequest { factor: mechanism, levels: unknown, ..udp() }, "--levels x: "),
        (ExactRequest { levels: vec!["ipv4".to_owned()], ..udp() }, "takes two"),
        (ExactRequest { factor: Some(Factor::Io), ..udp() }, "not io"),
        (ExactRequest { factor: Some(Factor::Neighbours), ..udp() }, "one table of neighbours"),
        (
            ExactRequest { factor: Some(Factor::Routes), path: Some(ExactPath::Link), ..udp() },
            "those of a router",
        ),
        (
            ExactRequest { factor: Some(Factor::Socket), family: Some(Family::Ipv6), ..udp() },
            "ipv4-mapped is of IPv4",
        ),
    ] {
        let error = request.plan().unwrap_err();
        assert!(error.contains(why), "{request:?}: {error}");
    }
}

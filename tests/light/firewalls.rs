//! Measurements through routers that translate addresses, drop packets, or let connections out only. The tests need
//! root.

use crate::support;

use serde_json::Value;
use std::time::{Duration, Instant};
use support::path::{HERE, RoutedPath, THERE};
use support::program::{Outcome, code};

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

fn warning<'a>(run: &'a Value, code: &str) -> Option<&'a str> {
    let warnings = run["warnings"].as_array()?;
    warnings.iter().find(|warning| warning["code"] == code)?["text"].as_str()
}

/// Fails unless nearly all that the sender sent arrived, in each direction.
fn assert_arrived(run: &Value, words: &str) {
    for pair in run["ends"].as_array().unwrap().chunks(2) {
        let [sent, received] = [&pair[0]["sent"], &pair[1]["received"]].map(|of| of["measured"].as_f64());
        assert!(sent > Some(0.0) && received >= sent.map(|sent| 0.9 * sent), "{words}: {run}");
    }
}

#[test]
fn address_translation_is_reported_and_not_invalid() {
    let path = RoutedPath::with(
        "nft add table ip n; nft add chain ip n c '{ type nat hook postrouting priority 100; }'
         nft add rule ip n c oif far masquerade",
    );
    let there = path.agent("");
    for words in ["tcp", "tcp -R", "udp -b 1M", "udp -b 1M -R -P 3", "echo", "echo -R", "connect"] {
        for (address, translated) in
            THERE.into_iter().zip([Some("address is translated on the way: 10.9.1.1 -> 10.9.2.254"), None])
        {
            let run = path.measure(&there, &format!("{words} {address} -t 0.3 --json")).expect(code::DONE);
            let run = json(&run);
            assert_arrived(&run, words);
            let said = warning(&run, "translated");
            assert_eq!(said.is_some(), translated.is_some(), "{words} {address}: {said:?}");
            assert!(said.is_none_or(|said| said.contains(translated.unwrap())), "{words}: {said:?}");
        }
    }
    // An agent behind a port forwarding of another address.
    let forwarded = path.agent("--data-port 5203");
    path.on_router(
        "ip address add 10.9.1.100/24 dev near
         nft add chain ip n d '{ type nat hook prerouting priority -100; }'
         nft add rule ip n d ip daddr 10.9.1.100 dnat to 10.9.2.2",
    );
    for words in ["tcp", "udp -b 1M -R"] {
        let run = path.measure(&forwarded, &format!("{words} 10.9.1.100 -t 0.3 --json")).expect(code::DONE);
        let warnings = json(&run)["warnings"].to_string();
        assert!(warnings.contains("10.9.2.2 -> 10.9.1.100"), "{words}: {warnings}");
    }
    let both = THERE.join(",");
    for words in ["udp -b 20M", "tcp -R"] {
        let run = path.measure(&there, &format!("{words} {both} -t 2 --against ipv4 --json"));
        let run = run.expect(code::DONE);
        let found = json(&run);
        assert_eq!(found["invalid_runs"].as_array().map(Vec::len), Some(0), "{run}");
        assert!(found["comparisons"][0]["effect"]["pairs"].as_u64() >= Some(2), "{run}");
    }
}

#[test]
fn flows_go_out_to_the_data_ports_alone() {
    let path = RoutedPath::with("");
    let there = path.agent("--data-port 5203-5204");
    path.on_router(&format!(
        "nft add table inet f
         nft add chain inet f c '{{ type filter hook forward priority 0; policy drop; }}'
         nft add rule inet f c ct state established,related accept
         nft add rule inet f c iif near tcp dport '{{ {}, 5203-5204 }}' accept
         nft add rule inet f c iif near udp dport 5203-5204 accept",
        there.port
    ));
    for words in [
        "tcp",
        "tcp -R",
        "tcp -R -P 3",
        "tcp --bidir",
        "udp -b 1M",
        "udp -b 1M -R",
        "udp -b 1M -R -P 3",
        "udp -b 1M --bidir",
        "echo -R",
        "echo --tcp -R",
    ] {
        for (here, there_at) in HERE.into_iter().zip(THERE) {
            let run = path.measure(&there, &format!("{words} {there_at} -t 0.3 --json")).expect(code::DONE);
            let run = json(&run);
            assert_arrived(&run, words);
            let sender = if words.contains("-R") { there_at } else { here };
            let role = &run["ends"][0]["role"];
            let local = run["ends"][0]["endpoint"]["local"].as_str();
            assert_eq!(role, "sender", "{words}");
            assert!(local.unwrap().contains(sender), "{words}: {local:?} is not on {sender}");
        }
    }
    // Opening connections from the other host is what that measures.
    let run = path.measure(&there, &format!("connect -R {} -t 1", THERE[0])).expect(code::INVALID);
    assert!(run.stdout.contains("does a firewall on the way drop tcp to port"), "{run}");
    drop(there);
    // The port of each direction.
    let path = RoutedPath::with("");
    let there = path.agent("--data-port 5203");
    let run = path.measure(&there, &format!("tcp --bidir {} -t 0.3", THERE[1])).expect(code::INVALID);
    assert!(run.stdout.contains("port 5203 is in use; each direction takes one"), "{run}");
    path.measure(&there, &format!("tcp {} -t 0.3", THERE[1])).expect(code::DONE);
}

#[test]
fn a_loss_of_all_datagrams_is_a_figure() {
    let path = RoutedPath::with(
        "nft add table ip6 f; nft add chain ip6 f c '{ type filter hook forward priority 0; }'
         nft add rule ip6 f c meta l4proto udp drop",
    );
    let there = path.agent("");
    for words in ["udp -b 1M", "udp -b 1M -R"] {
        let run = path.measure(&there, &format!("{words} {} -t 0.5 --json", THERE[1]));
        let run = run.expect(code::NOTHING_VALID).says(&["none of ", "arrived over ipv6", "no throughput"]);
        let run = json(&run);
        assert_eq!(run["values"]["loss"]["measured"].as_f64(), Some(1.0), "{words}: {run}");
        let throughput = run["values"]["throughput"]["missing"].as_str();
        assert_eq!(throughput, Some("no message arrived"), "{words}: {run}");
        let said = warning(&run, "nothing_arrived").unwrap_or_else(|| panic!("{words}: {run}"));
        assert!(said.contains("dropped on the way; a firewall?"), "{said}");
    }
    // A round trip has no figure then.
    let run = path.measure(&there, &format!("echo {} -t 1", THERE[1])).expect(code::NOTHING_VALID);
    run.says(&["no answer came back", "over ipv6"]);
    let words = format!("udp -b 1M {} -t 8 --against ipv4", THERE.join(","));
    let run = path.measure(&there, &words).expect(code::NOTHING_VALID).says(&["ipv6 does not get through"]);
    let loss = run.stdout.lines().find(|line| line.starts_with("loss ")).unwrap_or_default();
    // How many blocks there are, and so the verdict, depends on how busy the machine is.
    assert!(loss.contains("+100.00 [+100.00, +100.00] points"), "{run}");
}

#[test]
fn a_path_mtu_black_hole_ends_in_time_and_is_named() {
    let path = RoutedPath::with(
        "nft add table ip6 f; nft add chain ip6 f o '{ type filter hook output priority 0; }'
         nft add rule ip6 f o icmpv6 type packet-too-big drop
         ip link set near mtu 1280",
    );
    let there = path.agent("");
    let began = Instant::now();
    let run = path.measure(&there, &format!("tcp -R {} -t 1", THERE[1])).expect(code::INVALID);
    assert!(run.stdout.contains("a path MTU black hole?"), "{run}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // The control connection is as good as before, and so are small packets.
    for words in ["udp -l 1000 -b 1M -R", "tcp -R -M 1220"] {
        let run = path.measure(&there, &format!("{words} {} -t 0.5 --json", THERE[1])).expect(code::DONE);
        assert_arrived(&json(&run), words);
    }
}

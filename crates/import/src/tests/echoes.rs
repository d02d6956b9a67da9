//! Round trips of irtt, RIPE Atlas and netperf's tables.

use super::{UDP, V4, V6, file, is_missing, is_near, list_facts, one, read, tests};
use stacklab_model::{Direction, Metric, Probe};

#[test]
fn irtt_has_round_trips_and_what_was_not_answered() {
    let test = one(sample!("irtt-0.9.0-udp6.json"));
    assert_eq!(
        (test.probe, list_facts(&test)),
        (Probe::EchoOpenLoop, (V6, UDP, Some(60), 1, Direction::Forward))
    );
    is_near(&test, Metric::RttOpen, 0.166_649);
    is_near(&test, Metric::RttOpenMean, 0.209_039);
    is_near(&test, Metric::RttOpenP99, 0.366_490);
    is_near(&test, Metric::EchoLoss, 0.0);
    assert_eq!((test.started_unix_ns, test.duration_ns), (Some(1_795_667_381_566_718_323), 201_603_746));
    assert_eq!(test.rate, Some(4800.0));
    let text = String::from_utf8_lossy(sample!("irtt-0.9.0-udp6.json"));
    let silent = text.replace("\"packets_received\": 3", "\"packets_received\": 0");
    is_near(&one(silent.as_bytes()), Metric::EchoLoss, 1.0);
    is_missing(&one(silent.as_bytes()), Metric::RttOpen, "nothing was answered");
}

#[test]
fn ripe_atlas_pings_are_tests_and_others_are_named() {
    let ping = r#"{"af":6,"prb_id":1,"msm_id":2,"type":"ping","proto":"ICMP","size":64,"timestamp":1704067200,"sent":3,"rcvd":2,
        "result":[{"rtt":20.5},{"x":"*"},{"rtt":10.5}]}"#;
    let unreachable = r#"{"af":4,"prb_id":1,"msm_id":2,"type":"ping","proto":"UDP","size":64,"sent":3,"rcvd":0,
        "result":[{"error":"sendto failed: Network is unreachable"}]}"#;
    let route = r#"{"af":4,"prb_id":1,"msm_id":2,"type":"traceroute"}"#;
    let array = format!("[{ping},{unreachable},{route}]");
    let lines = [ping, unreachable, route].map(|result| result.replace('\n', " ")).join("\n");
    for text in [array, lines] {
        let [ping, unreachable] = tests(text.as_bytes()).try_into().expect("two tests");
        assert_eq!(list_facts(&ping), (V6, UDP, Some(64), 1, Direction::Forward));
        is_near(&ping, Metric::RttOpen, 15.5);
        is_near(&ping, Metric::EchoLoss, 1.0 / 3.0);
        assert_eq!(ping.started_unix_ns, Some(1_704_067_200_000_000_000));
        assert!(ping.warnings.iter().any(|warning| warning.code == "tool_icmp"));
        assert_eq!((unreachable.family, unreachable.warnings.len()), (V4, 0));
        assert!(unreachable.invalid[0].contains("Network is unreachable"));
        let left_out = file(text.as_bytes()).left_out;
        assert!(left_out[0].contains("traceroute: only pings"), "{left_out:?}");
    }
    let cut = read(r#"[{"prb_id":1,"msm_id":2,"type":"ping""#.as_bytes(), None).expect_err("cut").to_string();
    assert!(cut.contains("the JSON is cut short here"), "{cut}");
}

#[test]
fn netperf_writes_tables_of_omni_tests() {
    let banner = "OMNI Send|Recv TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 192.0.2.2 () port 0 AF_INET : first burst 0\n";
    let table = [
        "Throughput Throughput Mean         99th         Request Response Elapsed Protocol Direction ",
        "           Units      Latency      Percentile   Size    Size     Time             ",
        "                      Microseconds Latency      Bytes   Bytes    (sec)            ",
        "                                   Microseconds                                   ",
        "2000.00    Trans/s    498.00       600          1       1        10.00   UDP      Send|Recv \n",
    ]
    .join("\n");
    let test = one(format!("{banner}{table}").as_bytes());
    assert_eq!(list_facts(&test), (V4, UDP, Some(1), 1, Direction::Forward));
    is_near(&test, Metric::RttMean, 0.498);
    is_near(&test, Metric::RttP99, 0.6);
    assert_eq!(test.duration_ns, 10_000_000_000);
}

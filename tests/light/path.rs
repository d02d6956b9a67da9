//! `stacklab path`, with a real resolver (dnsmasq) and a real web server (nginx) in a namespace: a family that is
//! slower, has a
//! smaller MTU, is broken after connect, or is not there, each told for what it is.

mod resolvers;

use crate::support;

use serde_json::Value;
use stacklab_model::{Family, LinkConfig};
use stacklab_testbed::{Testbed, enter, in_namespace};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use support::program::{Outcome, Program, Running, code, require_root, require_tool};
use support::tun::{Faults, FaultyPath, address};

const SOON: Duration = Duration::from_secs(10);
/// Bytes of the longer page.
const LONG: usize = 400_000;

/// A client and a server, on a link and on a path with faults.
struct Scene {
    testbed: Testbed,
    faulty: Option<FaultyPath>,
    program: Program,
    _services: Vec<Running>,
}

impl Scene {
    /// `names` are lines of a name, its IPv4 and its IPv6 address.
    fn set(faults: Faults, names: impl Fn(&Scene) -> Vec<(&'static str, Vec<IpAddr>)>) -> Self {
        require_root();
        for (tool, package) in [("nsenter", "util-linux"), ("openssl", "openssl")] {
            require_tool(tool, package);
        }
        enter().unwrap_or_else(|error| panic!("{error}"));
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: true };
        let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"]).unwrap();
        let mut scene = Scene { testbed, faulty: None, program: Program::new(), _services: Vec::new() };
        scene.impair(faults);
        let names = names(&scene);
        scene._services = vec![scene.resolver(&names), scene.web_server()];
        scene
    }

    /// Replaces the path with faults; IPv6 has no connection meanwhile.
    fn impair(&mut self, faults: Faults) {
        self.faulty = None;
        self.faulty =
            Some(FaultyPath::new(self.testbed.hosts().each_ref().map(|host| host.pid()), faults, faults));
    }

    fn link(&self, family: Family) -> IpAddr {
        self.testbed.hosts()[1].address(family)
    }

    /// A command on the client (0) or the server (1).
    fn command(&self, host: usize, words: &str) -> Command {
        let pid = self.testbed.hosts()[host].pid().to_string();
        self.program.script(&["nsenter", "-t", &pid, "-n", "sh", "-c"], &format!("exec {words}"))
    }

    fn resolver(&self, names: &[(&str, Vec<IpAddr>)]) -> Running {
        let records: String = names
            .iter()
            .map(|(name, addresses)| {
                let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                format!(" --host-record={name},{}", all.join(","))
            })
            .collect();
        let words = format!(
            "env PATH=\"$PATH:/usr/sbin\" dnsmasq --keep-in-foreground --conf-file=/dev/null --no-hosts --no-resolv --local=/test/ \
             --pid-file= --user=root --log-facility=- --listen-address={},{} --bind-interfaces{records}",
            self.link(Family::Ipv4),
            self.link(Family::Ipv6)
        );
        let mut running = self.program.started(self.command(1, &words));
        running.wait_for("started", SOON);
        running
    }

    /// nginx with two pages, over HTTP and, with a certificate of a CA of the test's own, HTTPS.
    fn web_server(&self) -> Running {
        let work = self.program.work();
        let made = Command::new("sh").current_dir(&work).args(["-c", CERTIFICATES]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        self.program.write("index.html", "a short page\n");
        self.program.write("long", vec![b'x'; LONG]);
        let folder = work.display();
        let config = format!(
            "daemon off; user root; pid {folder}/pid; error_log stderr notice; worker_processes 1; events {{}}
             http {{ access_log off; client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;
             uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
             server {{ listen 80; listen [::]:80; listen 443 ssl; listen [::]:443 ssl; root {folder};
             ssl_certificate {folder}/leaf.pem; ssl_certificate_key {folder}/leaf.key; }} }}"
        );
        let config = self.program.write("nginx.conf", config);
        let mut running =
            self.program.started(self.command(1, &format!("{} -c {}", nginx().display(), config.display())));
        running.wait_for("start worker process ", SOON);
        running
    }

    fn path_command(&self, words: &str) -> Command {
        let resolvers = format!("{},{}", self.link(Family::Ipv4), self.link(Family::Ipv6));
        let ca = self.program.work().join("ca.pem");
        let words =
            format!("env SSL_CERT_FILE={} \"$STACKLAB\" path --resolver {resolvers} {words}", ca.display());
        self.command(0, &words)
    }

    fn path(&self, words: &str) -> Outcome {
        Outcome::of(self.path_command(words))
    }
}

const CERTIFICATES: &str = "
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem &&
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=leaf -keyout leaf.key -out leaf.csr &&
    printf 'subjectAltName=DNS:slow.test,DNS:both.test,DNS:four.test\\nbasicConstraints=CA:FALSE\\n' > extensions &&
    openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out leaf.pem";

/// Debian's, or what scripts/setup has unpacked.
fn nginx() -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/nginx/usr/sbin/nginx");
    let found = [PathBuf::from("/usr/sbin/nginx"), unpacked].into_iter().find(|nginx| nginx.exists());
    found.expect("this test needs nginx: scripts/setup test-all").canonicalize().unwrap()
}

fn first(outcome: &Outcome) -> Value {
    let all: Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    all[0].clone()
}

fn metric<'a>(run: &'a Value, name: &str) -> &'a Value {
    let metrics = run["metrics"].as_array().unwrap_or_else(|| panic!("{run:#}"));
    metrics.iter().find(|metric| metric["metric"] == name).unwrap_or_else(|| panic!("{name}: {run:#}"))
}

fn median(metric: &Value, family: &str) -> f64 {
    metric[family]["median"].as_f64().unwrap_or_else(|| panic!("{family}: {metric:#}"))
}

#[test]
fn slower_family_is_told_with_all_of_its_steps() {
    let faults = Faults { delay: Duration::from_micros(2_500), ..Faults::default() };
    let scene = Scene::set(faults, |scene| {
        vec![("slow.test", vec![scene.link(Family::Ipv4), address(Family::Ipv6, 1)])]
    });
    let outcome = scene.path("https://slow.test/long --pps 100 -n 12 --format json").expect(code::DONE);
    let run = first(&outcome);
    assert_eq!(run["families"]["ipv6"]["state"], "works", "{run:#}");
    for name in ["icmp_rtt", "tcp_connect", "tls_handshake", "http_first_byte"] {
        let metric = metric(&run, name);
        assert_eq!((&metric["verdict"], &metric["better"]), (&"better".into(), &"ipv4".into()), "{metric:#}");
        // The link adds 5 ms. A handshake also takes this machine's time, whose medians vary by milliseconds.
        let slower = median(metric, "ipv6") - median(metric, "ipv4");
        assert!((3.0..20.0).contains(&slower), "{metric:#}");
        assert_eq!(metric["ratio"]["pairs"], 12, "{metric:#}");
        assert!(metric["ratio"]["low95"].as_f64().unwrap() > 1.0, "{metric:#}");
    }
    let goodput = metric(&run, "http_goodput");
    assert_eq!(goodput["better"], "ipv4", "{goodput:#}");
    for name in ["path_mtu", "hops"] {
        assert_eq!(metric(&run, name)["verdict"], "equivalent", "{run:#}");
    }
    assert_eq!(
        (median(metric(&run, "path_mtu"), "ipv4"), median(metric(&run, "hops"), "ipv6")),
        (1500.0, 1.0)
    );
    // Both resolvers are on the link.
    assert!(median(metric(&run, "dns"), "ipv6") < 5.0, "{run:#}");
    // For people and for spreadsheets.
    let text = scene.path("http://slow.test --pps 100 -n 12").expect(code::DONE);
    assert!(text.stdout.contains("ipv4 better") && text.stdout.contains("works (12 of 12"), "{text}");
    let csv = scene.path("http://slow.test --pps 100 -n 3 --format csv").expect(code::DONE);
    assert_eq!(csv.stdout.lines().count(), 1 + 3 * 2 * 6, "{csv}");
}

#[test]
fn a_smaller_mtu_is_found_though_nobody_tells_it() {
    let faults = Faults { longest: Some(1340), ..Faults::default() };
    let scene = Scene::set(faults, |scene| {
        vec![("narrow.test", vec![scene.link(Family::Ipv4), address(Family::Ipv6, 1)])]
    });
    let run = first(&scene.path("http://narrow.test --pps 100 -n 3 --format json").expect(code::DONE));
    let mtu = metric(&run, "path_mtu");
    assert_eq!((median(mtu, "ipv4"), median(mtu, "ipv6")), (1500.0, 1340.0), "{mtu:#}");
    assert_eq!((&mtu["verdict"], &mtu["better"]), (&"better".into(), &"ipv4".into()), "{mtu:#}");
    // A page of more than a packet never arrives.
    let outcome = scene.path("http://narrow.test/long --pps 100 -n 1 --format json").expect(9);
    let run = first(&outcome);
    assert_eq!(run["families"]["ipv6"]["state"], "broken", "{run:#}");
    assert_eq!(run["families"]["ipv4"]["state"], "works", "{run:#}");
}

#[test]
fn lost_echoes_are_no_routers_and_no_smaller_mtu() {
    // More than half of all echoes have no answer.
    let faults = Faults { drop_echo: Some((3, 1)), ..Faults::default() };
    let scene = Scene::set(faults, |_| Vec::new());
    let pair = format!("{} {} http://lossy.test/\n", scene.link(Family::Ipv4), address(Family::Ipv6, 1));
    let file = scene.program.write("pairs", pair).display().to_string();
    let words = format!("\"$STACKLAB\" path --pairs {file} --pps 1000 -n 1 --format json");
    let run = first(&Outcome::of(scene.command(0, &words)).expect(code::DONE));
    for (name, figure) in [("hops", 1.0), ("path_mtu", 1500.0)] {
        let metric = metric(&run, name);
        assert_eq!((median(metric, "ipv4"), median(metric, "ipv6")), (figure, figure), "{run:#}");
    }
}

#[test]
fn broken_and_absent_families_are_told_apart() {
    let scene = Scene::set(Faults::default(), |scene| {
        let [four, six] = [Family::Ipv4, Family::Ipv6].map(|family| scene.link(family));
        vec![
            ("mute.test", vec![four, address(Family::Ipv6, 1)]),
            ("four.test", vec![four]),
            ("both.test", vec![four, six]),
        ]
    });
    // The kernel opens connections, and nobody answers.
    let server = scene.testbed.hosts()[1].pid();
    let mute: SocketAddr = (address(Family::Ipv6, 1), 8080).into();
    let _mute = in_namespace(server, move || TcpListener::bind(mute)).unwrap().unwrap();
    let four: SocketAddr = (scene.link(Family::Ipv4), 8080).into();
    let answering = in_namespace(server, move || TcpListener::bind(four)).unwrap().unwrap();
    thread::spawn(move || {
        use std::io::{Read, Write};
        for mut stream in answering.incoming().flatten() {
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let outcome = scene.path("http://mute.test:8080 --pps 100 -n 1 --format json").expect(9);
    let run = first(&outcome.says(&["mute.test:8080 over ipv6: broken"]));
    let six = &run["families"]["ipv6"];
    assert!(
        six["state"] == "broken" && six["reason"].as_str().unwrap().contains("connected, then no answer"),
        "{six:#}"
    );
    assert_eq!(metric(&run, "tcp_connect")["ipv6"]["count"], 1, "{run:#}");
    assert_eq!(run["families"]["ipv4"]["state"], "works", "{run:#}");
    let outcome = scene.path("https://four.test --pps 100 -n 3 --format json").expect(9);
    let six = &first(&outcome)["families"]["ipv6"];
    assert!(
        six["state"] == "absent" && six["reason"].as_str().unwrap().contains("no AAAA record"),
        "{six:#}"
    );
    // Nothing listens; a certificate of nobody known; a name that is none.
    let outcome = scene.path("http://both.test:81 --pps 100 -n 1 --format json").expect(9);
    assert_eq!(first(&outcome)["families"]["ipv4"]["state"], "unreachable");
    let foreign = "https://both.test --pps 100 -n 1 --format json";
    let outcome = scene.path(&foreign.replace("both.test", "both.test:80")).expect(9);
    assert!(outcome.stdout.contains("TLS handshake failed"), "{outcome}");
    scene.path("https://none.test --pps 100 -n 1").expect(code::HOST).says(&["no address"]);
    scene.path("http://both.test --pps 100 -n 5").expect(code::DONE);
    // Pairs need no names.
    let pair = format!("{} {} http://both.test/\n", scene.link(Family::Ipv4), scene.link(Family::Ipv6));
    let file = scene.program.write("pairs", pair).display().to_string();
    let words = format!("\"$STACKLAB\" path --pairs {file} --pps 100 -n 3 --format json");
    let run = first(&Outcome::of(scene.command(0, &words)).expect(code::DONE));
    assert_eq!(run["families"]["ipv6"]["state"], "works", "{run:#}");
}

#[test]
fn no_more_probes_and_bytes_are_sent_than_allowed() {
    let scene = Scene::set(Faults::default(), |scene| {
        vec![("both.test", [Family::Ipv4, Family::Ipv6].map(|family| scene.link(family)).to_vec())]
    });
    let start = Instant::now();
    let run = first(
        &scene.path("http://both.test/long --pps 10 -n 4 --max-bytes 2M --format json").expect(code::DONE),
    );
    // Each family: one probe for the MTU and, from 64 down, seven or more for hops; then six for each round.
    assert!(start.elapsed() >= Duration::from_secs(3), "{:?}", start.elapsed());
    // Two million bytes in eight requests, and what is under way when a request is given up: none has the whole page,
    // and the interface has not carried eight pages with the headers of their packets.
    let pid = scene.testbed.hosts()[0].pid();
    let table = in_namespace(pid, || std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    let link =
        table.lines().find(|line| line.trim_start().starts_with("st0:")).unwrap_or_else(|| panic!("{table}"));
    let received: u64 = link.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((1_900_000..8 * LONG as u64 * 1514 / 1448).contains(&received), "{link}");
    assert_eq!(metric(&run, "http_goodput")["ipv4"]["count"], 4, "{run:#}");
    assert_eq!(run["rounds"], 4);
}

/// What the client's exporter answers.
fn scrape(scene: &Scene, path: &str) -> String {
    use std::io::{Read, Write};
    let client = scene.testbed.hosts()[0].pid();
    let mut stream = in_namespace(client, || TcpStream::connect("127.0.0.1:9109")).unwrap().unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn drift_between_families_is_told_while_watching() {
    let mut scene = Scene::set(Faults::default(), |scene| {
        vec![("both.test", vec![scene.link(Family::Ipv4), address(Family::Ipv6, 1)])]
    });
    let command = scene.path_command("http://both.test --watch --pps 60 -n 80 --metrics 127.0.0.1:9109");
    let running = scene.program.started(command);
    thread::sleep(Duration::from_secs(5));
    let metrics = scrape(&scene, "/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    for line in [
        "# TYPE stacklab_path_ratio gauge",
        "stacklab_path_family_works{target=\"http://both.test\",family=\"ipv4\"} 1",
        "stacklab_path_family_works{target=\"http://both.test\",family=\"ipv6\"} 1",
        "metric=\"tcp_connect\",unit=\"ms\",transport=\"tcp\",verdict=\"nothing\",better=\"\"} 0",
        "stacklab_path_last{target=\"http://both.test\",metric=\"icmp_rtt\"",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert!(scrape(&scene, "/other").starts_with("HTTP/1.1 404"));
    scene.impair(Faults { delay: Duration::from_millis(4), ..Faults::default() });
    let outcome = running.end(Duration::from_secs(60));
    // Requests that failed while the path was replaced count too.
    assert!([Some(9), Some(10)].contains(&outcome.status.code()), "{outcome}");
    let outcome = outcome.says(&["drift: tcp_connect over IPv6 was"]);
    assert!(outcome.stdout.contains("round 80"), "{outcome}");
}

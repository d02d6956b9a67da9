//! The language of study files as one table: what keys there are, what they hold, what they mean and what they
//! default to. Checking ([`crate::language::check`]), defaults ([`crate::parse::layers`]) and the JSON Schema
//! ([`crate::language::schema`]) are all made from it.

use crate::language::wifi::{self, WIFI};
use crate::language::{KeyDef, Kind, Presence, default, optional, required};
use stacklab_model::{
    Direction, Factor, Family, FlowOffload, Generator, MAX_CLIENTS, MAX_CONNECTIONS, MAX_NEIGHBOURS,
    MAX_PAIRS, MAX_ROUTES, MAX_RULES, Mechanism, Pinning, Probe, RouterQueue, RuleForm, SearchDevice,
    SenderPriority, SizeOf, SocketKind, Tracking, Translator, Transport, Until,
};

const TITLE: KeyDef = required("title", Kind::Text, "The title of reports.");
const TESTBED: KeyDef = default(
    "testbed",
    Kind::Table(TESTBED_KEYS),
    "{}",
    "The link between two hosts, or every link of a row. Both families are addressed.",
);
const FACTORS: KeyDef = required(
    "factors",
    Kind::Table(LEVELS),
    "The factors. Every combination of levels is a cell of the study.",
);
const INCLUDE: KeyDef = optional(
    "include",
    Kind::Tables(OTHER_LEVELS),
    "Further cells beside those of factors, one table for each set: the factors named here have these levels, all others those of factors. Factors of hosts and of routers are those of all cells, but for the routers' tables (rules, routes, conntrack ..).",
);
const PROBE: KeyDef = required(
    "probe",
    Kind::SomeOf(PROBES),
    "How each cell is measured: one table for each probe, at least one.",
);
const BLOCKS: KeyDef = default("blocks", Kind::Table(RULE), "{}", "When the campaign has measured enough.");
const COMPARISON: KeyDef =
    optional("comparison", Kind::Tables(COMPARED), "Questions: two levels of one factor, all else equal.");
const HOST: KeyDef = optional(
    "host",
    Kind::Tables(HOSTS),
    "Real machines (ssh:.. and localhost in factors.os): which of their addresses the traffic uses.",
);
const PROGRAM: KeyDef = optional(
    "program",
    Kind::Tables(PROGRAMS),
    "Programs to be compared: a server and a client each, measured by probe.program. The study has no transport and no size then: they are the programs' own.",
);
const SCALE: KeyDef = optional(
    "scale",
    Kind::Table(SCALES),
    "Variants of the study by effort. The one named by --scale is merged over the study.",
);

const WITHOUT: KeyDef = optional(
    "without",
    Kind::List(&Kind::Level),
    "Levels that are left out of every factor that has them, with the comparisons that need them; set by --without.",
);

/// A whole study file.
pub(crate) const STUDY: &[KeyDef] =
    &[TITLE, TESTBED, HOST, PROGRAM, FACTORS, INCLUDE, PROBE, BLOCKS, COMPARISON, WITHOUT, SCALE];

/// What a scale or `--set` may change: everything but scales.
pub(crate) const PARTIAL: &[KeyDef] =
    &[TITLE, TESTBED, HOST, PROGRAM, FACTORS, INCLUDE, PROBE, BLOCKS, COMPARISON, WITHOUT];

const PROGRAMS: &[KeyDef] = &[
    required("name", Kind::Text, "Its name, a level of factors.program."),
    required(
        "server",
        Kind::Text,
        "The command of the server, for a shell in the folder where stacklab runs. PLACEHOLDERS The server runs until it is ended (SIGTERM).",
    ),
    required(
        "client",
        Kind::Text,
        "The command of the client, which begins when the server is ready, and ends by itself with exit code 0.",
    ),
    default(
        "transport",
        Kind::Name { set: "transport", names: Transport::NAMES },
        "\"tcp\"",
        "The protocol of the server's port: it is ready once a socket waits there.",
    ),
    default("port", Kind::Integer { least: 1, most: 65_535 }, "7000", "The server's port."),
    default("limit", Kind::Duration { least: "1s", most: "24h" }, "\"60s\"", "How long the client may take."),
    default(
        "requests",
        Kind::Integer { least: 1, most: 1_000_000_000 },
        "1000",
        "What `{requests}` is in a run. `explain --exact` chooses other numbers.",
    ),
    optional(
        "needs",
        Kind::List(&Kind::Text),
        "Programs that have to be in PATH, or files, with a `/`, that have to be at this path: where one is missing, `stacklab run` leaves the program out, and with --fail-on refuses the study.",
    ),
    optional(
        "version",
        Kind::Text,
        "A command for a shell whose first line the record keeps as the version, within 10 s.",
    ),
];

const SCALES: &[KeyDef] = &[
    optional("quick", Kind::Part, "Minutes."),
    optional("standard", Kind::Part, "Until the intervals meet the target."),
    optional("paper", Kind::Part, "The runs and packets that published studies use."),
    optional("tool", Kind::Part, "The program that the published study used drives the traffic."),
];

const TESTBED_KEYS: &[KeyDef] = &[
    optional(
        "rate",
        Kind::Rate,
        "Rate of the link in each direction, Ethernet overhead counted. Absent: no limit.",
    ),
    default(
        "mtu",
        Kind::Integer { least: 1280, most: 65_535 },
        "1500",
        "Largest IP packet of the link, bytes. IPv6 needs 1280.",
    ),
    default(
        "offloads",
        Kind::Boolean,
        "false",
        "Whether segmentation and receive offloads (TSO, GSO, GRO, LRO) stay on; checksum offload does. Off, a packet in the kernel is a packet on the wire.",
    ),
    default(
        "rebuild",
        Kind::Boolean,
        "true",
        "Whether testbeds of namespaces are rebuilt for each block, so that the properties of one testbed do not look like a difference. false: they last for the whole campaign, for programs that inspect them.",
    ),
    default(
        "topology",
        Kind::Name { set: "topology", names: TOPOLOGIES },
        "\"link\"",
        "How hosts are connected. link: two hosts, one link. routed: client, router, router, client in a chain, three links of this rate and MTU unless sender_link and receiver_link say otherwise; factors.mechanism says how packets cross the middle one. wifi: station, access point, and station or wired host, on one radio channel, simulated in a guest; testbed.wifi says how.",
    ),
    optional("wifi", Kind::Table(WIFI), "The Wi-Fi network. Wi-Fi topology only."),
    LATE,
    LOST,
    optional(
        "sender_link",
        Kind::Table(END_LINK),
        "Settings of the link between the sender and its router. Routed topology only.",
    ),
    optional(
        "receiver_link",
        Kind::Table(END_LINK),
        "Settings of the link between the receiver and its router. Routed topology only.",
    ),
];

const LATE: KeyDef = optional(
    "delay",
    Kind::Duration { least: "0s", most: "10s" },
    "How much later packets arrive over the link between the routers, or over the one that the table is about, in each direction. Routed topology only.",
);
const LOST: KeyDef = optional(
    "loss",
    Kind::Share,
    "The share of packets lost on the link between the routers, or on the one that the table is about, in each direction. Routed topology only.",
);

/// A link of a routed testbed, other than the middle one.
const END_LINK: &[KeyDef] = &[
    optional("rate", Kind::Rate, "Its rate in each direction, at least testbed.rate. Absent: testbed.rate."),
    optional(
        "mtu",
        Kind::Integer { least: 1280, most: 65_535 },
        "Its MTU, bytes, at least testbed.mtu. Absent: testbed.mtu.",
    ),
    LATE,
    LOST,
];

const TOPOLOGIES: &[&str] = &["link", "routed", "wifi"];

const HOSTS: &[KeyDef] = &[
    required("os", Kind::System, "The machine, as factors.os names it: \"ssh:user@host\" or \"localhost\"."),
    optional(
        "interface",
        Kind::Text,
        "Its interface of the network under test; its first global address of each family is used.",
    ),
    optional("ipv4", Kind::Address(Family::Ipv4), "Its IPv4 address on the network under test."),
    optional(
        "ipv6",
        Kind::Address(Family::Ipv6),
        "Its IPv6 address on the network under test; a link-local one with that machine's interface, as in \"fe80::7%eth0\".",
    ),
];

pub(crate) const LEVELS: &[KeyDef] = &[
    required("family", Kind::List(&Kind::Name { set: "family", names: Family::NAMES }), "Address families."),
    required(
        "transport",
        Kind::List(&Kind::Name { set: "transport", names: Transport::NAMES }),
        "Transport protocols.",
    ),
    default(
        "size_of",
        Kind::List(&Kind::Name { set: "size_of", names: SizeOf::NAMES }),
        "[\"payload\"]",
        "What size means. payload: each message leaves in a separate packet. write: what the program writes per call. frame: the whole Ethernet frame, UDP only.",
    ),
    required(
        "size",
        Kind::List(&Kind::Integer { least: 1, most: 1_048_576 }),
        "Bytes per message, or per frame with size_of = frame.",
    ),
    optional(
        "replica",
        Kind::List(&Kind::Text),
        "Labels without effect: two replicas of one arm must not differ (an A/A study).",
    ),
    optional(
        "os",
        Kind::List(&Kind::System),
        "The system of the hosts: namespace (this kernel, the default), gvisor, smoltcp (that library's stack, within the agent), linux-SERIES (Debian's kernel of that series in a virtual machine), uml (user-mode Linux), disk:PATH (your disk image), ssh:USER@HOST and localhost (real machines). Both hosts run it, or \"SENDER -> RECEIVER\". Behind routers it is the system of the two clients, without real machines; factors.router_os is that of the routers.",
    ),
    optional(
        "services",
        Kind::List(&Kind::Services),
        "Services on the receiver; the sender queries each ten times per second: none (the default), or names joined by + of dns, dhcp (dnsmasq) and directory (slapd). Between namespaces only.",
    ),
    optional(
        "mechanism",
        Kind::List(&Kind::Name { set: "mechanism", names: Mechanism::NAMES }),
        "How packets cross the link between two routers (testbed.topology \"routed\"). LEVELS A mechanism is measured with the families that it carries.",
    ),
    optional(
        "router_os",
        Kind::List(&Kind::System),
        "The system of the two routers (testbed.topology \"routed\"): namespace (this kernel, the default), uml, uml-NAME, linux-SERIES or disk:PATH. Both routers run it, or \"NEAR -> FAR\", near being the sender's.",
    ),
    optional(
        "translator",
        Kind::List(&Kind::Name { set: "translator", names: Translator::NAMES }),
        "The translator on the routers for nat64, siit and 464xlat. jool: the kernel's module, whose NAT64 keeps state. tayga: a program, stateless, which map-t always has. Absent: jool if a router's kernel has it and streams flow forward only, tayga otherwise.",
    ),
    optional(
        "rules",
        Kind::List(&Kind::Integer { least: 0, most: MAX_RULES as i64 }),
        "Firewall rules (nftables) on the sender's router that match no packet of the study (testbed.topology \"routed\"): what passes is compared with all of them. 0, the default: without a firewall.",
    ),
    optional(
        "rule_form",
        Kind::List(&Kind::Name { set: "form of rules", names: RuleForm::NAMES }),
        "How the firewall has its rules. list: a rule for each address (the default). set: one rule with a set of all addresses. map: one rule with a map from all addresses to what is done with their packets.",
    ),
    optional(
        "routes",
        Kind::List(&Kind::Integer { least: 0, most: MAX_ROUTES as i64 }),
        "Further routes of each family on the sender's router (testbed.topology \"routed\"), with prefix lengths as in the Internet's table and to networks that no packet of the study has, unless it has several destinations: what passes is looked up among them. 0, the default: only the routes that the testbed needs.",
    ),
    optional(
        "destinations",
        Kind::List(&Kind::Integer { least: 1, most: MAX_ROUTES as i64 }),
        "Addresses to which the datagrams of a stream go, one drawn for each (testbed.topology \"routed\", mechanism native, UDP, one flow forward): the sender's router looks up another route for each, where its table has as many. Other probes than streams measure the cells with one. 1, the default: the receiver's own address.",
    ),
    optional(
        "neighbours",
        Kind::List(&Kind::Integer { least: 0, most: MAX_NEIGHBOURS as i64 }),
        "Further permanent neighbours of each family on the link between the receiver's router and the receiver (testbed.topology \"routed\"): ARP entries, and those of IPv6's neighbour cache. The receiver is looked up among them for each packet; with several destinations each of these is a neighbour, and no level but 0 may be below them. 0, the default: the receiver alone.",
    ),
    optional(
        "conntrack",
        Kind::List(&Kind::CountOr { most: MAX_CONNECTIONS as i64, name: Tracking::OFF }),
        "Connection tracking on the sender's router (testbed.topology \"routed\"). A number: connections of what passes are tracked, and that many further ones of each family are there. off, the default: not tracked, unless the mechanism needs it.",
    ),
    optional(
        "flow_offload",
        Kind::List(&Kind::Name { set: "flow offload", names: FlowOffload::NAMES }),
        "Whether the sender's router forwards known connections by a flowtable of nftables, in software (testbed.topology \"routed\", mechanisms native, nat44, nat66 and nptv6). on: after its first packets a connection passes neither its rules nor its routes; this needs connection tracking, which factors.conntrack = [\"off\"] then leaves on. off, the default: each packet is forwarded as the first.",
    ),
    optional(
        "router_queue",
        Kind::List(&Kind::Name { set: "router queue", names: RouterQueue::NAMES }),
        "What takes packets into routers that are namespaces (testbed.topology \"routed\"). inline: nothing, the thread that sends a packet also forwards it, and no router drops any (the default). thread: a kernel thread of each ingress (threaded NAPI) with a ring of 256 packets, which makes a router a device with a capacity; pinned to the receiver's CPUs with root. rps: the backlog of the receiver's CPUs, which forward in a softirq (receive packet steering); needs root.",
    ),
    optional(
        "clients",
        Kind::List(&Kind::Integer { least: 1, most: MAX_CLIENTS as i64 }),
        "Customers that send at the same time (testbed.topology \"routed\"): each has a link from the sender, a first router and a middle link, and all share the second router and the receiver. Flow i is of customer i, in turn; by default there is one for each. Streams forward only, and mechanisms whose second router can have several customers. 1, the default: the chain of four hosts.",
    ),
    optional(
        "io",
        Kind::List(&Kind::Name { set: "I/O path", names: IO }),
        "How messages enter and leave the kernel. auto: the program chooses (the default). send: one call per message. sendmmsg: several messages per call. gso: one call per GSO batch, UDP only. zerocopy: from the program's memory, TCP only.",
    ),
    optional(
        "flows",
        Kind::List(&Kind::Integer { least: 1, most: 10_000 }),
        "Parallel flows, each with a separate socket. Absent: one, or one for each of several clients.",
    ),
    optional(
        "direction",
        Kind::List(&Kind::Name { set: "direction", names: Direction::NAMES }),
        "Which way a stream flows. forward: sender to receiver. reverse: receiver to sender. both: at once.",
    ),
    optional(
        "mtu",
        Kind::List(&Kind::Integer { least: 1280, most: 65_535 }),
        "Largest IP packet of the link, bytes, in place of testbed.mtu.",
    ),
    optional(
        "queue_length",
        Kind::List(&Kind::Integer { least: 1, most: 100_000 }),
        "Packets that may wait at each end of the link. Absent: bytes by the link's rate, or no queue at all.",
    ),
    optional(
        "pinning",
        Kind::List(&Kind::Name { set: "pinning", names: Pinning::NAMES }),
        "The CPUs of the hosts. halves: each host has half of the cores. steered: they also do its receive work, which needs root. none: any. Absent: halves; with root also steered for streams over a link of known rate, and for the sender's receive work in other TCP streams.",
    ),
    optional(
        "socket",
        Kind::List(&Kind::Name { set: "socket", names: SocketKind::NAMES }),
        "The sockets of both hosts. native: of the family of the traffic (the default). ipv4-mapped: IPv6 sockets for both families (IPV6_V6ONLY off), to which IPv4 addresses are mapped ones (::ffff:192.0.2.1), as most servers have them. For IPv4 only: cells of IPv6 have the other level, or none.",
    ),
    optional("send_buffer", BUFFER, "SO_SNDBUF as requested, bytes; Linux doubles it."),
    optional("receive_buffer", BUFFER, "SO_RCVBUF as requested, bytes; Linux doubles it."),
    optional(
        "mss",
        Kind::List(&Kind::Integer { least: 88, most: 32_767 }),
        "TCP's maximum segment size (TCP_MAXSEG), bytes of payload and TCP options. TCP only.",
    ),
    optional(
        "nodelay",
        Kind::List(&Kind::Boolean),
        "TCP_NODELAY. Absent: true, and only a flood with `size_of = write` joins its messages. TCP only.",
    ),
    optional(
        "congestion_control",
        Kind::List(&Kind::Text),
        "TCP's congestion control (TCP_CONGESTION), such as \"cubic\". TCP only.",
    ),
    optional(
        "dscp",
        Kind::List(&Kind::Integer { least: 0, most: 63 }),
        "Differentiated services code point of every packet.",
    ),
    optional(
        "flow_label",
        Kind::List(&Kind::Integer { least: 0, most: 0xf_ffff }),
        "IPv6 flow label of every packet of the traffic; 0 is none. IPv6 only.",
    ),
    optional(
        "busy_poll",
        Kind::List(&Kind::Integer { least: 0, most: 1_000_000 }),
        "Microseconds that a receive polls the device in the kernel (SO_BUSY_POLL).",
    ),
    optional(
        "kernel_pacing",
        Kind::List(&Kind::Boolean),
        "Whether the kernel spaces the messages of probe.stream's message_rate (SO_MAX_PACING_RATE), and not the program. Absent: false. TCP only.",
    ),
    optional(
        "wifi",
        Kind::Table(wifi::VARIED),
        "Settings of the Wi-Fi network that vary: keys of testbed.wifi. Wi-Fi topology only.",
    ),
    optional(
        "generator",
        Kind::List(&Kind::Name { set: "generator", names: Generator::NAMES }),
        "The program that drives the traffic, by its own command line in both hosts. LEVELS All but stacklab: between namespaces only, streams forward, without warm-up; TCP with size_of = write. Their trials have no slices, so all arms of the study are separate.",
    ),
    optional(
        "programs",
        Kind::List(&Kind::Text),
        "Folders of the generator's programs, such as two builds of iperf3: [\"base/src\", \"candidate/src\"], seen from the folder where stacklab runs. Absent: the programs in PATH. Generators other than stacklab only.",
    ),
    optional(
        "program",
        Kind::List(&Kind::Text),
        "Names of [[program]] tables: the programs that are measured. Absent: all of them.",
    ),
];

/// The keys of a table that changes some levels.
const OTHER_LEVELS: &[KeyDef] = &{
    let mut keys = [LEVELS[0]; LEVELS.len()];
    let mut index = 0;
    while index < keys.len() {
        keys[index] = KeyDef { presence: Presence::Optional, ..LEVELS[index] };
        index += 1;
    }
    keys
};

/// Levels of factor io: the model's, and the choice being the program's.
const IO: &[&str] = &["auto", "send", "sendmmsg", "gso", "zerocopy"];
const BUFFER: Kind = Kind::List(&Kind::Integer { least: 1024, most: 1 << 30 });

const PROBES: &[KeyDef] = &[
    optional(
        "stream",
        Kind::Table(&[
            metrics(Probe::Stream),
            LENGTH,
            WARMUP,
            INTERVAL,
            optional(
                "message_rate",
                Kind::MessageRate,
                "Messages per second on a fixed schedule, or \"link\": as many as the headers leave of testbed.rate, the greatest load that can be carried without loss. Absent: flood.",
            ),
        ]),
        "One direction: messages flow from the sender to the receiver.",
    ),
    optional(
        "paced",
        Kind::Table(&[
            metrics(Probe::Paced),
            LENGTH,
            WARMUP,
            INTERVAL,
            default(
                "message_rate",
                Kind::PacedRate,
                "\"50 %\"",
                "Messages per second on a fixed schedule; or \"link\"; or a share of the rate at which the slowest arm of an interleaved trial floods during the warm-up, the same schedule for all arms; or \"search\": this arm's lower bound by probe.search.goal, of the same block.",
            ),
        ]),
        "A stream on a schedule below the path's capacity, for delays: each message is sent and stamped by a separate call.",
    ),
    optional(
        "echo",
        Kind::Table(&[
            metrics(Probe::Echo),
            LENGTH,
            WARMUP,
            INTERVAL,
            optional(
                "message_rate",
                Kind::Refused(
                    "echo sends a message when the answer to the one before has arrived; echo_open_loop keeps a schedule",
                ),
                "",
            ),
        ]),
        "Closed loop: each message returns before the next one is sent.",
    ),
    optional(
        "echo_open_loop",
        Kind::Table(&[
            metrics(Probe::EchoOpenLoop),
            LENGTH,
            WARMUP,
            INTERVAL,
            required("message_rate", MESSAGE_RATE, "Messages per second on a fixed schedule."),
        ]),
        "Open loop: messages go out on a schedule; round trips count from the intended send time.",
    ),
    optional(
        "echo_under_load",
        Kind::Table(&[
            metrics(Probe::EchoUnderLoad),
            default(
                "length",
                Kind::OneOf(&[
                    optional("packets", Kind::Refused("the load stream needs a duration: use time"), ""),
                    optional("time", Kind::Duration { least: "1ms", most: "24h" }, "Duration of one run."),
                ]),
                ONE_SECOND,
                "When the measured part of a run ends: after some time.",
            ),
            WARMUP,
            INTERVAL,
            optional(
                "message_rate",
                Kind::MessageRate,
                "Messages per second of the stream, on a fixed schedule, or \"link\": as many as the headers leave of testbed.rate. Absent: flood.",
            ),
        ]),
        "Closed loop during a load stream of the same transport and size, which begins before it and ends after it.",
    ),
    optional(
        "connect",
        Kind::Table(&[
            metrics(Probe::Connect),
            LENGTH,
            WARMUP,
            INTERVAL,
            optional(
                "message_rate",
                Kind::Refused("connect opens a connection when the one before is established"),
                "",
            ),
        ]),
        "TCP connections opened one after another.",
    ),
    optional(
        "search",
        Kind::Table(&[
            metrics(Probe::Search),
            optional(
                "loss",
                Kind::Share,
                "The share of a slice's messages that may be lost, or wait in a queue when the last one was sent. Absent: none.",
            ),
            default(
                "exceed",
                Kind::Share,
                "\"50 %\"",
                "The share of slices with more loss at the load that is the answer.",
            ),
            optional(
                "slice",
                Kind::Duration { least: "10ms", most: "10s" },
                "Length of a slice. Absent: for ten messages of the allowed loss at the slowest arm's rate, 50 ms to 5 s; 1 s if none may be lost.",
            ),
            optional(
                "highest",
                Kind::Number { least: 100.0, most: 1e9 },
                "The highest load that is tried, messages per second. An arm that carries it has no figure. Absent: what the generator can send.",
            ),
            default(
                "device",
                Kind::Name { set: "device", names: SearchDevice::NAMES },
                "\"testbed\"",
                "Where messages are lost. testbed: in what stacklab builds, which must have a router, a rate or a guest. path: in the network between two machines.",
            ),
            default(
                "priority",
                Kind::Name { set: "priority", names: SenderPriority::NAMES },
                "\"realtime\"",
                "Of the sender's thread while it sends. realtime: before others of its processor (SCHED_FIFO), which needs root or a limit rtprio of 1; without the right, where sender and receiver share processors, and in slices of more than 500 ms it is normal.",
            ),
            optional(
                "goal",
                Kind::Table(GOAL),
                "Bounds of each arm's throughput (RFC 9971), searched near its highest load. {} is the throughput of RFC 2544 and RFC 8219. Absent: none.",
            ),
            optional(
                "connections",
                Kind::Integer { least: 1024, most: 262_144 },
                "The most connections that a slice of connection_rate and established_rate makes, and those that teardown_rate deletes: a slice is shorter if its load makes more. Absent: 16384.",
            ),
        ]),
        "The highest load without more than some loss: streams of short slices, each arm at its own load, which goes up after a good slice and down after a bad one. UDP, in one direction.",
    ),
    optional(
        "sockets",
        Kind::Table(&[
            metrics(Probe::Sockets),
            default(
                "pairs",
                Kind::Integer { least: 100, most: MAX_PAIRS as i64 },
                "2000",
                "Pairs of sockets, both ends on the sending host, connected over its loopback interface.",
            ),
        ]),
        "Sockets that are held, idle and then full: what they take of the kernel's memory.",
    ),
    optional(
        "program",
        Kind::Table(&[
            metrics(Probe::Program),
            default(
                "time",
                Kind::Duration { least: "1ms", most: "24h" },
                "\"1s\"",
                "What {seconds} is in the commands; the client's own end is the end of a run.",
            ),
        ]),
        "Programs of the study's own ([[program]]): each run starts a server and a client.",
    ),
];

const GOAL: &[KeyDef] = &[
    optional("loss", Kind::Share, "The share of a trial's messages that may be lost. Absent: none."),
    optional(
        "exceed",
        Kind::Share,
        "The share of the trials at a lower bound that may lose more. Absent: none.",
    ),
    default("trial", Kind::Duration { least: "10ms", most: "1h" }, "\"60s\"", "Length of a trial."),
    optional(
        "sum",
        Kind::Duration { least: "10ms", most: "24h" },
        "Length of all trials at a bound together, at least that of one. Absent: that of one.",
    ),
    default("width", Kind::Share, "\"1 %\"", "Distance of both bounds, over the upper one."),
];

pub(crate) const MESSAGE_RATES: (f64, f64) = (0.001, 1e9);
pub(crate) const MESSAGE_RATE: Kind = Kind::Number { least: MESSAGE_RATES.0, most: MESSAGE_RATES.1 };

const fn metrics(probe: Probe) -> KeyDef {
    let list = match probe {
        Probe::Stream => &Kind::Metric(Some(Probe::Stream)),
        Probe::Paced => &Kind::Metric(Some(Probe::Paced)),
        Probe::Echo => &Kind::Metric(Some(Probe::Echo)),
        Probe::EchoOpenLoop => &Kind::Metric(Some(Probe::EchoOpenLoop)),
        Probe::EchoUnderLoad => &Kind::Metric(Some(Probe::EchoUnderLoad)),
        Probe::Connect => &Kind::Metric(Some(Probe::Connect)),
        Probe::Search => &Kind::Metric(Some(Probe::Search)),
        Probe::Sockets => &Kind::Metric(Some(Probe::Sockets)),
        Probe::Program => &Kind::Metric(Some(Probe::Program)),
    };
    required("metrics", Kind::List(list), "The metrics of the probe.")
}

const ONE_SECOND: &str = "{ time = \"1s\" }";

const LENGTH: KeyDef = default(
    "length",
    Kind::OneOf(&[
        optional(
            "packets",
            Kind::Integer { least: 1, most: 1_000_000_000_000 },
            "Messages (or connections) of one run.",
        ),
        optional("time", Kind::Duration { least: "1ms", most: "24h" }, "Duration of one run."),
    ]),
    ONE_SECOND,
    "When the measured part of a run ends: after some packets or some time.",
);

const WARMUP: KeyDef = default(
    "warmup",
    Kind::Duration { least: "0s", most: "1h" },
    "\"50ms\"",
    "The same traffic before the measured part, so that buffers, caches and congestion windows have settled.",
);

const INTERVAL: KeyDef = default(
    "interval",
    Kind::Duration { least: "1ms", most: "1h" },
    "\"100ms\"",
    "One row of each run's time series.",
);

const SCHEDULES: &[&str] = &["sequential", "interleaved"];

const RULE: &[KeyDef] = &[
    default(
        "min",
        Kind::Integer { least: 2, most: MAX_RUNS },
        "10",
        "Blocks (each measures every cell once) before the first look; an interval needs two.",
    ),
    default("max", Kind::Integer { least: 2, most: MAX_RUNS }, "40", "Blocks at most."),
    default(
        "until",
        Kind::Name { set: "until", names: Until::NAMES },
        "\"verdict\"",
        "The goal of a comparison. verdict: a settled claim, of which at most one in twenty is false. precise: an interval as narrow as the target; the verdict is made then.",
    ),
    default(
        "target",
        Kind::Share,
        "\"2 %\"",
        "Half-width of a comparison's 95 % interval at which it stops, if blocks.until is precise.",
    ),
    optional(
        "budget",
        Kind::Duration { least: "1s", most: "720h" },
        "Maximum time of the campaign, from its first trial on. It ends between two trials, after two blocks at the least.",
    ),
    optional(
        "schedule",
        Kind::Name { set: "schedule", names: SCHEDULES },
        "How compared cells are measured. sequential: each in a separate trial, one after the other. interleaved: in one trial, all sockets open, in turns of some milliseconds; their differences are then known much sooner. Streams and echoes that end after a time, of cells that differ in family, transport, size_of, size, replica, io, flows or a socket option, or whose testbeds can be up beside each other (os, mechanism, translator, router_os, router_queue); others stay sequential. Absent: interleaved, unless a probe ends after a number of messages or asks for a figure that such arms share, or nothing is compared.",
    ),
    optional(
        "slice",
        Kind::Duration { least: "500us", most: "10s" },
        "Length of a turn of interleaved arms. Absent: chosen after the warm-up, for at least 200 messages or 20 round trips.",
    ),
];

const MAX_RUNS: i64 = 10_000;

const COMPARED: &[KeyDef] = &[
    required("factor", Kind::Name { set: "factor", names: Factor::NAMES }, "What differs."),
    required("baseline", Kind::Level, "The level compared with."),
    required("candidate", Kind::Level, "The level compared."),
    optional(
        "metrics",
        Kind::List(&Kind::Metric(None)),
        "The metrics compared. Absent: all metrics of all probes, but the bias of generators.",
    ),
    default(
        "margin",
        Kind::Share,
        "\"2 %\"",
        "The largest difference that does not matter, for rates and times. Shares and counts have other margins.",
    ),
    default(
        "instructions",
        Kind::Boolean,
        "false",
        "Whether `stacklab run` also counts the instructions per message of these cells, in an emulated machine: exact figures, beside the measured ones, of probe.stream, or of probe.echo without it; in a study of programs those per request in user space, under an emulator for programs. It takes some seconds for each pair of cells, and needs QEMU and the image linux-6.1, or qemu-x86_64 for programs, whose commands must have {requests}; where they are missing, the study runs without counts. Cells with settings that the emulated machine does not know are left out, and the report says which.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Cell, Io};

    #[test]
    fn io_paths_are_those_of_the_model_and_auto() {
        assert_eq!((IO[0], &IO[1..]), ("auto", Io::NAMES));
    }

    #[test]
    fn every_level_of_the_language_is_one_of_the_models() {
        check(LEVELS, "");
    }

    fn check(keys: &[KeyDef], table: &str) {
        for key in keys {
            let name = format!("{table}{}", key.name);
            let kind = match key.kind {
                Kind::Table(keys) => {
                    check(keys, &format!("{name}."));
                    continue;
                }
                Kind::List(kind) => kind,
                _ => panic!("{name} is no list"),
            };
            let factor: Factor = name.parse().unwrap();
            let levels: Vec<String> = match kind {
                Kind::Name { names, .. } => names.iter().map(|name| (*name).to_owned()).collect(),
                Kind::Integer { least, most } => vec![least.to_string(), most.to_string()],
                Kind::CountOr { most, name } => vec!["0".to_owned(), most.to_string(), (*name).to_owned()],
                Kind::OneOfNumbers(numbers) => numbers.iter().map(ToString::to_string).collect(),
                Kind::Duration { least, most } => vec![(*least).to_owned(), (*most).to_owned()],
                Kind::Boolean => vec!["true".to_owned(), "false".to_owned()],
                // Values read by the model's own parsers, and text of any kind.
                Kind::System | Kind::Services | Kind::Text => continue,
                _ => panic!("{factor} has levels of a kind that this test does not know"),
            };
            for level in levels {
                let mut cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 64);
                cell.set(factor, &level).unwrap();
                assert_eq!(cell.level(factor), level);
            }
        }
    }
}

//! The lines of iperf 2, versions 2.0 to 2.2, as forms.

use super::forms::Forms;

/// What a line is.
#[derive(Debug, Clone, Copy)]
pub(super) enum IperfLine {
    Listening,
    Connecting,
    /// The line of dashes around settings.
    Dashes,
    /// Bytes of a message.
    Size,
    /// Bytes of a message, rounded if there is a point in them.
    Buffer,
    Connection,
    /// Figures of an interval.
    Row,
    /// What the next row is: the server's.
    ServerReport,
    Late,
    Version,
    /// It may say why figures are not as expected: it is listed.
    Warning,
    /// The tool failed.
    Failure,
    /// The server was interrupted, whatever it still received.
    Stopped,
    /// Its tests are left out.
    LeftOut(&'static str),
    /// It has no figure that is read, and changes none.
    Known,
}

pub(super) const BOTH: &str = "both directions were measured at once (-d, --full-duplex) and cannot be separated: test one after the other (-r)";
pub(super) const BOUNCEBACK: &str = "bounceback: requests and answers, and no stream";
const FRAMES: &str = "an isochronous test, which sends frames on a schedule: stacklab has no such probe";
const BURSTS: &str = "a test that sends bursts on a schedule: stacklab has no such probe";
const MPTCP: &str = "MPTCP: stacklab has no such transport";
pub(super) const LOAD: &str = "other streams ran at once (--working-load): test without it";
const OTHER_FORM: &str = "frames or bursts, each on a separate line: stacklab has no such probe";

use IperfLine::*;

pub(super) const LINES: &Forms<IperfLine> = &[
    (Listening, "Server listening on {transport} {tail}"),
    (Connecting, "Client connecting to {peer}, {transport} {tail}"),
    (Dashes, "------------------------------{..}"),
    (Size, "Sending {size} byte datagrams<, IPG target: {n} us< (kalman adjust)>>"),
    (Buffer, "Write buffer size: {bytes}< (writetimer-enabled)>"),
    // Figures.
    (
        Connection,
        "[ <*>{id}] local {local} port {port} connected with {peer} port<:> {peer_port}<({n})> {tail}",
    ),
    (Late, "[ <*>{id}] {from}- {to} sec {late} datagrams received out-of-order"),
    (Row, "[ <*>{id}] {from}- {to} sec {bytes} {rate} {tail}"),
    (ServerReport, "[ {id}] Server Report:"),
    (Version, "iperf version {version} {..}"),
    // Lines in brackets without figures that are read.
    (Known, "[ ID] Interval {..}"),
    (Known, "[SUM-cnt] Interval {..}"),
    (LeftOut(BURSTS), "[ ID] Burst (start-end) {..}"),
    (Known, "[ {id}] Sent {n} datagrams"),
    (Known, "[ {id}] {from}- {to} sec {w}-PDF: {..}"),
    (Known, "[ {id}] {from}- {to} trip-time (3WHS done-{..}"),
    (Known, "[ {id}] {from}- {to} sec OWD Delays (ms) {..}"),
    (Known, "[ {id}] Clock sync check (ms): {..}"),
    (Known, "[ {id}] Client traffic to start in {n} seconds at {..}"),
    (Known, "[ {id}] MSS size {n} bytes< (MTU {n} bytes, {..}>"),
    (Known, "[ {id}] MSS and MTU size unknown {..}"),
    (Known, "[ {id}] NUM_REPORT_STRUCTS override from {n} to {n}"),
    (Known, "[ CT] final connect times {..}"),
    (Known, "[drop] local {..}"),
    (LeftOut(OTHER_FORM), "[ <*>{id}] {from}- {to}({n}) sec {..}"),
    (Warning, "[ {id}] WARN<ING>: {..}"),
    (Warning, "[ {id}] {from}- {to} sec L2 processing detected errors, {..}"),
    // Settings.
    (Known, "TCP window size: {bytes}< (default)>< (WARNING: requested {bytes})>"),
    (Known, "UDP buffer size: {bytes}< (default)>< (WARNING: requested {bytes})>"),
    (Known, "Read buffer size: {bytes}< (Dist bin width= {bytes})>"),
    (Known, "Receiving {n} byte datagrams"),
    (Known, "TOS set to {w}< and nodelay>< (Nagle on)>< (Nagle off)>"),
    (Known, "TOS defaults to {w} (dscp={n},ecn={n})< and nodelay>< (Nagle on)>< (Nagle off)>"),
    (Known, "TOS will be set to {w}< (dscp={n},ecn={n})>"),
    (Known, "Reflected TOS will be set to {w}< (dscp={n},ecn={n})>"),
    (Known, "TCP congestion control {w} {w}"),
    (Known, "TCP congestion control set to {w}"),
    (Known, "TCP near-congestion delay weight set to {n}< (use --near-congestion={..}>"),
    (Known, "Binding to local address {w}< and iface {w}>"),
    (Known, "Joining multicast {..}"),
    (Known, "Setting multicast TTL to {n}"),
    (Known, "fair-queue socket pacing set to {..}"),
    (Known, "MSS req size {n} bytes (per TCP_MAXSEG)"),
    (Known, "MSS size {n} bytes"),
    (Known, "Enabled receive histograms {..}"),
    (Known, "Enabled write histograms {..}"),
    (Known, "Event based writes {..}"),
    (Known, "Server set to single client traffic mode {..}"),
    (Known, "Permit key is {..}"),
    (Known, "Running Iperf Server as a daemon"),
    (Known, "The Iperf daemon process ID : {n}"),
    (Known, "Output from stdout and stderr will be redirected to file {..}"),
    (Stopped, "Waiting for server threads to complete. Interrupt again to force quit."),
    (Known, "will give poor performance. See the Iperf documentation."),
    (LeftOut(BOUNCEBACK), "Bounce<->back test {..}"),
    // Of a bounceback, whose reason is there already.
    (LeftOut(BURSTS), "Bursting request {..}"),
    (LeftOut(BURSTS), "Bursting: {..}"),
    (LeftOut(FRAMES), "Isochronous: {..}"),
    (LeftOut("a handshake, and no stream"), "TCP three-way-handshake (3WHS) only"),
    (Warning, "WARN<ING>: {..}"),
    (Warning, "WARN<ING> {..}"),
    (Failure, "ERROR: {..}"),
    (Failure, "{w} failed<: {..}>"),
    (Failure, "{w} {w} failed<: {..}>"),
];

/// What stands behind the transport in a heading, and why its tests are left out, if they are.
pub(super) const HEADS: &Forms<Option<&'static str>> = &[
    (None, "<(v6) >port {port}< with pid {n}>< via {w}>< ({flows}</{load}> flows</load>)>"),
    (None, "<(v6) >ports {port}-{n}< with pid {n}>"),
    (
        Some(BOTH),
        "<(v6) >port {port}< with pid {n}>< via {w}>< ({flows}</{load}> flows</load>)> (full-duplex)",
    ),
    (Some(MPTCP), "<(v6) >(MPTCP) port {port}{..}"),
    (Some(MPTCP), "<(v6) >port {port} (MPTCP){..}"),
];

/// What a note behind the ends of a connection is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Note {
    Version,
    Reverse,
    /// When it began.
    Begin,
    LeftOut(&'static str),
    /// It changes no figure that is read.
    Plain,
}

pub(super) const NOTES: &Forms<Note> = &[
    (Note::Version, "(peer {version})"),
    (Note::Reverse, "(reverse)"),
    (Note::Begin, "on {date} {time} ({zone})"),
    (Note::LeftOut(BOTH), "(full-duplex)"),
    (Note::LeftOut(BOUNCEBACK), "(bb {w} {w})"),
    (Note::LeftOut(BOUNCEBACK), "(bb {w})"),
    (Note::LeftOut(FRAMES), "(isoch)"),
    (Note::LeftOut(BURSTS), "(burst-period={w})"),
    (Note::LeftOut(MPTCP), "(MPTCP)"),
    (Note::LeftOut(MPTCP), "(mptcp)"),
    (Note::Plain, "(sock={n})"),
    (Note::Plain, "(MSS={n})"),
    (Note::Plain, "(icwnd/mss/irtt={n}/{n}/{n})"),
    (Note::Plain, "(ct={n} ms)"),
    (Note::Plain, "(trip-times)"),
    (Note::Plain, "(prefetch={w})"),
    (Note::Plain, "(clamp={w})"),
    (Note::Plain, "(fq)"),
    (Note::Plain, "(qack)"),
    (Note::Plain, "(l2mode)"),
    (Note::Plain, "(no-udp-fin)"),
    (Note::Plain, "(epoch-start)"),
    (Note::Plain, "(tos rx/tx={w})"),
    (Note::Plain, "(tos tx={w})"),
    (Note::Plain, "(tos rx={w})"),
    (Note::Plain, "(WARNING: requested {bytes})"),
];

/// What stands behind the rate in a row. Round trips are in microseconds, jitter in milliseconds.
pub(super) const ROWS: &Forms<()> = &[
    ((), ""),
    // UDP, of a receiver: in 2.0 losses are `0/ 891`.
    (
        (),
        "{jitter} ms {lost}/ {sent} ({n}%)< {times} ms>< {n} pps>< {n}/{n}({n}) pkts>< {n} pkts>< {n}/{n}/{n}>< {n}>",
    ),
    ((), "{jitter} ms {lost}/ {sent} ({n}%) {times} ms {n} pps inf"),
    // A sender: writes and errors; of TCP retransmissions, windows and round trips too.
    ((), "{n}/{n}</{n}>< {n} pps>"),
    ((), "{n}/{n}</{n}> {retries}"),
    ((), "{n}/{n}</{n}> {retries} {n}K/{rtt}<({n})> us< {n}>< {times} ms ({n})>"),
    ((), "{n}/{n}</{n}> {retries} {n}K({n})/{rtt}<({n})> us< {n}>"),
    ((), "{n}/{n}</{n}> {retries} {n}K<({n})>/{n}K<({n})>/{rtt}<({n})> us< {n}>"),
    ((), "{n}/{n}</{n}> {retries} NA/{rtt}<({n})> us< {n}>< {times} ms ({n})>"),
    // A receiver of TCP: reads and their sizes, and latencies (--trip-times).
    ((), "{n}= {bins}"),
    ((), "{n} {bins}"),
    ((), "{times} ms< ({n}/{n})>< {bytes}>< {n}>< {n}= {bins}>"),
];

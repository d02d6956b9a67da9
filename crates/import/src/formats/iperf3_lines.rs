//! The lines of iperf3, versions 3.1 to 3.21, as forms.

use super::forms::Forms;

/// What a line is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Client,
    Server,
    /// A server waits for the next test.
    Waiting,
    Version,
    /// The table of the whole test follows.
    Dashes,
    Reverse,
    Setting,
    /// What no other test has.
    Cookie,
    /// A file was sent or written (-F).
    File,
    Cpu,
    UdpHeading,
    Connection,
    Late,
    Row,
    Message,
    Warning,
    /// What the server printed of the same test (--get-server-output).
    ServerOutput,
    Done,
    /// JSON follows, which both ends exchanged (-d): settings, or the figures of the rows.
    Exchange,
    /// It has no figure that is read, and changes none.
    Known,
}

pub(super) const LINES: &Forms<Kind> = &[
    (Kind::Client, "Connecting to host {peer}, port {port}"),
    (Kind::Server, "Accepted connection from {peer}, port {port}"),
    (Kind::Waiting, "Server listening on {port}< (test #{n})>"),
    (Kind::Version, "iperf 3{version}< (cJSON {w})>"),
    // In a form a space may be missing: the line around headings comes first.
    (Kind::Known, "------------------------------{..}"),
    (Kind::Dashes, "- - - - - {..}"),
    (Kind::Dashes, "- - -"),
    (Kind::Reverse, "Reverse mode, remote host {peer} is sending"),
    (
        Kind::Setting,
        "Starting Test: protocol: {protocol}, {flows} streams, {size} byte blocks, omitting {n} seconds, {seconds} second test{..}",
    ),
    (Kind::Setting, "Starting Test: protocol: {protocol}, {flows} streams, {size} byte blocks, {..}"),
    (
        Kind::Cpu,
        "CPU Utilization: {w}/{w} {all}% ({user}%u/{n}%s), {w}/{w} {remote_all}% ({remote_user}%u/{n}%s)",
    ),
    // Figures.
    (Kind::Connection, "[ {id}] local {local} port {port} connected <to><with> {peer} port {peer_port}"),
    (Kind::Late, "[ {id}]<[{role}]> {from}- {to} sec {late} datagrams received out-of-order"),
    (Kind::Row, "[ {id}]<[{role}]> {from}- {to} sec {bytes} {rate} {tail}"),
    (Kind::UdpHeading, "[ ID]<[Role]> Interval Transfer {w} Jitter Lost/Total Datagrams"),
    (Kind::UdpHeading, "[ ID]<[Role]> Interval Transfer {w} Total Datagrams"),
    (Kind::Known, "[ ID]<[Role]> Interval Transfer {w}< Retr>< Cwnd>"),
    (Kind::Known, "[ {id}] Sent {n} datagrams"),
    (Kind::Known, "[ {id}] (sender statistics not available)"),
    (Kind::Known, "[ {id}] (receiver statistics not available)"),
    (Kind::Known, "[ {id}] MSS size {n} bytes (MTU {n} bytes, {..}"),
    (Kind::Known, "[ {id}] MSS and MTU size unknown {..}"),
    (Kind::Known, "[ {id}] Read lengths occurring in more than {..}"),
    (Kind::Known, "[ {id}] {n} bytes read {n} times ({n}%)"),
    // Messages, and what -V and -d print.
    (Kind::Message, "iperf3: {tail}"),
    (Kind::Warning, "warning: {tail}"),
    (Kind::Warning, "WARNING: {tail}"),
    (Kind::ServerOutput, "Server output:"),
    (Kind::ServerOutput, "Server JSON output:"),
    (Kind::Done, "iperf Done."),
    (Kind::Known, "Test Complete. Summary Results:"),
    (Kind::Known, "Finished omit period, starting real test"),
    (Kind::Known, "Control connection MSS {n}"),
    (Kind::Known, "Time: {..}"),
    (Kind::Cookie, "Cookie: {cookie}"),
    (Kind::Known, "TCP MSS: {n}< (default)>"),
    (Kind::Known, "Target Bitrate: {n}"),
    (Kind::Known, "Setting UDP block size to {n}"),
    (Kind::Known, "TCP window size: {bytes}"),
    (Kind::Known, "Using TCP Autotuning"),
    (Kind::File, "Sent {bytes} / {bytes} ({n}%) of {..}"),
    (Kind::File, "Received {bytes} / {bytes} ({n}%) of {..}"),
    (Kind::Known, "Authentication {w} for user {..}"),
    (Kind::Known, "snd_tcp_congestion {w}"),
    (Kind::Known, "rcv_tcp_congestion {w}"),
    (Kind::Known, "event=TCP_Info {..}"),
    (Kind::Known, "State change: {..}"),
    (Kind::Known, "Reading new State from the {..}"),
    (Kind::Known, "Thread FD {n} {w}"),
    (Kind::Known, "All threads {w}"),
    (Kind::Known, "Sender threads stopped"),
    (Kind::Known, "Receiver threads stopped"),
    // What -d prints beside them.
    (Kind::Exchange, "send_parameters:"),
    (Kind::Exchange, "get_parameters:"),
    (Kind::Exchange, "send_results"),
    (Kind::Exchange, "get_results"),
    (Kind::Known, "SNDBUF is {n}, expecting {n}"),
    (Kind::Known, "RCVBUF is {n}, expecting {n}"),
    (Kind::Known, "Congestion algorithm is {w}"),
    (Kind::Known, "Setting application pacing to {n}"),
    (Kind::Known, "Setting fair-queue socket pacing to {n}"),
    (Kind::Known, "Sending Connect message to Socket {n}"),
    (Kind::Known, "Connect received for Socket {n}, sz={n}, buf={w}, i={n}, max_len_wait_for_reply={n}"),
    (Kind::Known, "sent {n} bytes of {n},< pending {n},> total {n}"),
    (Kind::Known, "received {n} bytes of {n}, total {n}"),
    (Kind::Known, "pcount {n} packet_count {n}"),
    (Kind::Known, "Late receive, state = {n}"),
    (Kind::Known, "tcpi_snd_cwnd {n} tcpi_snd_mss {n} tcpi_rtt {n}"),
    (Kind::Known, "interval_len {n} bytes_transferred {n}"),
    (Kind::Known, "interval forces keep"),
    (Kind::Known, "ignoring short interval with no data"),
    // The system's name.
    (Kind::Known, "Linux {..}"),
    (Kind::Known, "Darwin {..}"),
    (Kind::Known, "FreeBSD {..}"),
    (Kind::Known, "NetBSD {..}"),
    (Kind::Known, "OpenBSD {..}"),
    (Kind::Known, "SunOS {..}"),
    (Kind::Known, "CYGWIN_{..}"),
];

/// Whose figures a row has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    Sender,
    Receiver,
    /// An interval, or all of a test of UDP before 3.7.
    Unnamed,
    Omitted,
}

/// What stands behind the rate in a row: retransmissions and a window of TCP, datagrams that a sender of UDP sent, or
/// jitter in milliseconds and losses.
pub(super) const ROWS: &Forms<End> = &[
    (End::Unnamed, "<{retries}< {bytes}>>"),
    (End::Omitted, "<{retries}< {bytes}>> (omitted)"),
    (End::Sender, "<{retries}> sender"),
    (End::Receiver, "<{retries}> receiver"),
    (End::Unnamed, "{jitter} ms {lost}/{all} ({n}%)"),
    (End::Omitted, "{jitter} ms {lost}/{all} ({n}%) (omitted)"),
    (End::Sender, "{jitter} ms {lost}/{all} ({n}%) sender"),
    (End::Receiver, "{jitter} ms {lost}/{all} ({n}%) receiver"),
];

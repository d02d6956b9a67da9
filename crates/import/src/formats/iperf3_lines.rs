//! The lines of iperf3, versions 3.1 to 3.21, as forms.

use super::forms::Forms;

/// What a line is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Iperf3Line {
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

pub(super) const LINES: &Forms<Iperf3Line> = &[
    (Iperf3Line::Client, "Connecting to host {peer}, port {port}"),
    (Iperf3Line::Server, "Accepted connection from {peer}, port {port}"),
    (Iperf3Line::Waiting, "Server listening on {port}< (test #{n})>"),
    (Iperf3Line::Version, "iperf 3{version}< (cJSON {w})>"),
    // In a form a space may be missing: the line around headings comes first.
    (Iperf3Line::Known, "------------------------------{..}"),
    (Iperf3Line::Dashes, "- - - - - {..}"),
    (Iperf3Line::Dashes, "- - -"),
    (Iperf3Line::Reverse, "Reverse mode, remote host {peer} is sending"),
    (
        Iperf3Line::Setting,
        "Starting Test: protocol: {protocol}, {flows} streams, {size} byte blocks, omitting {n} seconds, {seconds} second test{..}",
    ),
    (Iperf3Line::Setting, "Starting Test: protocol: {protocol}, {flows} streams, {size} byte blocks, {..}"),
    (
        Iperf3Line::Cpu,
        "CPU Utilization: {w}/{w} {all}% ({user}%u/{n}%s), {w}/{w} {remote_all}% ({remote_user}%u/{n}%s)",
    ),
    // Figures.
    (
        Iperf3Line::Connection,
        "[ {id}] local {local} port {port} connected <to><with> {peer} port {peer_port}",
    ),
    (Iperf3Line::Late, "[ {id}]<[{role}]> {from}- {to} sec {late} datagrams received out-of-order"),
    (Iperf3Line::Row, "[ {id}]<[{role}]> {from}- {to} sec {bytes} {rate} {tail}"),
    (Iperf3Line::UdpHeading, "[ ID]<[Role]> Interval Transfer {w} Jitter Lost/Total Datagrams"),
    (Iperf3Line::UdpHeading, "[ ID]<[Role]> Interval Transfer {w} Total Datagrams"),
    (Iperf3Line::Known, "[ ID]<[Role]> Interval Transfer {w}< Retr>< Cwnd>"),
    (Iperf3Line::Known, "[ {id}] Sent {n} datagrams"),
    (Iperf3Line::Known, "[ {id}] (sender statistics not available)"),
    (Iperf3Line::Known, "[ {id}] (receiver statistics not available)"),
    (Iperf3Line::Known, "[ {id}] MSS size {n} bytes (MTU {n} bytes, {..}"),
    (Iperf3Line::Known, "[ {id}] MSS and MTU size unknown {..}"),
    (Iperf3Line::Known, "[ {id}] Read lengths occurring in more than {..}"),
    (Iperf3Line::Known, "[ {id}] {n} bytes read {n} times ({n}%)"),
    // Messages, and what -V and -d print.
    (Iperf3Line::Message, "iperf3: {tail}"),
    (Iperf3Line::Warning, "warning: {tail}"),
    (Iperf3Line::Warning, "WARNING: {tail}"),
    (Iperf3Line::ServerOutput, "Server output:"),
    (Iperf3Line::ServerOutput, "Server JSON output:"),
    (Iperf3Line::Done, "iperf Done."),
    (Iperf3Line::Known, "Test Complete. Summary Results:"),
    (Iperf3Line::Known, "Finished omit period, starting real test"),
    (Iperf3Line::Known, "Control connection MSS {n}"),
    (Iperf3Line::Known, "Time: {..}"),
    (Iperf3Line::Cookie, "Cookie: {cookie}"),
    (Iperf3Line::Known, "TCP MSS: {n}< (default)>"),
    (Iperf3Line::Known, "Target Bitrate: {n}"),
    (Iperf3Line::Known, "Setting UDP block size to {n}"),
    (Iperf3Line::Known, "TCP window size: {bytes}"),
    (Iperf3Line::Known, "Using TCP Autotuning"),
    (Iperf3Line::File, "Sent {bytes} / {bytes} ({n}%) of {..}"),
    (Iperf3Line::File, "Received {bytes} / {bytes} ({n}%) of {..}"),
    (Iperf3Line::Known, "Authentication {w} for user {..}"),
    (Iperf3Line::Known, "snd_tcp_congestion {w}"),
    (Iperf3Line::Known, "rcv_tcp_congestion {w}"),
    (Iperf3Line::Known, "event=TCP_Info {..}"),
    (Iperf3Line::Known, "State change: {..}"),
    (Iperf3Line::Known, "Reading new State from the {..}"),
    (Iperf3Line::Known, "Thread FD {n} {w}"),
    (Iperf3Line::Known, "All threads {w}"),
    (Iperf3Line::Known, "Sender threads stopped"),
    (Iperf3Line::Known, "Receiver threads stopped"),
    // What -d prints beside them.
    (Iperf3Line::Exchange, "send_parameters:"),
    (Iperf3Line::Exchange, "get_parameters:"),
    (Iperf3Line::Exchange, "send_results"),
    (Iperf3Line::Exchange, "get_results"),
    (Iperf3Line::Known, "SNDBUF is {n}, expecting {n}"),
    (Iperf3Line::Known, "RCVBUF is {n}, expecting {n}"),
    (Iperf3Line::Known, "Congestion algorithm is {w}"),
    (Iperf3Line::Known, "Setting application pacing to {n}"),
    (Iperf3Line::Known, "Setting fair-queue socket pacing to {n}"),
    (Iperf3Line::Known, "Sending Connect message to Socket {n}"),
    (
        Iperf3Line::Known,
        "Connect received for Socket {n}, sz={n}, buf={w}, i={n}, max_len_wait_for_reply={n}",
    ),
    (Iperf3Line::Known, "sent {n} bytes of {n},< pending {n},> total {n}"),
    (Iperf3Line::Known, "received {n} bytes of {n}, total {n}"),
    (Iperf3Line::Known, "pcount {n} packet_count {n}"),
    (Iperf3Line::Known, "Late receive, state = {n}"),
    (Iperf3Line::Known, "tcpi_snd_cwnd {n} tcpi_snd_mss {n} tcpi_rtt {n}"),
    (Iperf3Line::Known, "interval_len {n} bytes_transferred {n}"),
    (Iperf3Line::Known, "interval forces keep"),
    (Iperf3Line::Known, "ignoring short interval with no data"),
    // The system's name.
    (Iperf3Line::Known, "Linux {..}"),
    (Iperf3Line::Known, "Darwin {..}"),
    (Iperf3Line::Known, "FreeBSD {..}"),
    (Iperf3Line::Known, "NetBSD {..}"),
    (Iperf3Line::Known, "OpenBSD {..}"),
    (Iperf3Line::Known, "SunOS {..}"),
    (Iperf3Line::Known, "CYGWIN_{..}"),
];

/// Whose figures a row has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RowOwner {
    Sender,
    Receiver,
    /// An interval, or all of a test of UDP before 3.7.
    Unnamed,
    Omitted,
}

/// What stands behind the rate in a row: retransmissions and a window of TCP, datagrams that a sender of UDP sent, or
/// jitter in milliseconds and losses.
pub(super) const ROWS: &Forms<RowOwner> = &[
    (RowOwner::Unnamed, "<{retries}< {bytes}>>"),
    (RowOwner::Omitted, "<{retries}< {bytes}>> (omitted)"),
    (RowOwner::Sender, "<{retries}> sender"),
    (RowOwner::Receiver, "<{retries}> receiver"),
    (RowOwner::Unnamed, "{jitter} ms {lost}/{all} ({n}%)"),
    (RowOwner::Omitted, "{jitter} ms {lost}/{all} ({n}%) (omitted)"),
    (RowOwner::Sender, "{jitter} ms {lost}/{all} ({n}%) sender"),
    (RowOwner::Receiver, "{jitter} ms {lost}/{all} ({n}%) receiver"),
];

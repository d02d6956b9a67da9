//! Files that are not read: how other tools and compressions are recognised, and what to do with them.

/// The first bytes of files that are not text, what they are, and what to do.
const MAGICS: [(&[u8], &str, &str); 15] = [
    (b"BZh", "compressed by bzip2", "unpack it first: bunzip2 -k FILE"),
    (b"\xfd7zXZ\0", "compressed by xz", "unpack it first: unxz -k FILE"),
    (b"\x5d\0\0", "compressed by lzma", "unpack it first: unlzma -k FILE"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it first: unzstd FILE"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "unpack it first: unlz4 FILE"),
    (b"\x1f\x9d", "compressed by compress", "unpack it first: uncompress FILE"),
    (b"PK\x03\x04", "an archive of zip", "unpack it first: unzip FILE"),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7z", "unpack it first: 7z x FILE"),
    (b"Rar!", "an archive of rar", "unpack it first"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)", "import the result of the tool that sent them"),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)", "import the result of the tool that sent them"),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)", "import the result of the tool that sent them"),
    (
        b"SQLite format 3\0",
        "a database of SQLite",
        "write a record's rows first: stacklab export RECORD --format csv",
    ),
    (b"PAR1", "Apache Parquet", "write its rows as CSV first: stacklab export RECORD --format csv"),
    (b"%PDF-", "a document in PDF", "import the result of the tool that measured"),
];

/// Where the archive of tar has its mark.
const TAR_MARK: std::ops::Range<usize> = 257..262;

/// Words of a text, all of which are there, and the tool that writes it.
const TOOLS: [(&[&str], &str); 40] = [
    (&["<ntttcp"], "XML of ntttcp"),
    (&["sockperf: "], "the text of sockperf"),
    (&["\"prb_id\""], "a result of RIPE Atlas other than its pings"),
    (&["Run Statistics", "Operations"], "the text of uperf"),
    (&["orward statistics for port"], "the text of testpmd"),
    (&["tcp_bw:"], "the text of qperf"),
    (&["tcp_lat:"], "the text of qperf"),
    (&["udp_bw:"], "the text of qperf"),
    (&["udp_lat:"], "the text of qperf"),
    (&["nuttcp-"], "the text of nuttcp"),
    (&[" MB / ", " sec = ", "Mbps"], "the text of nuttcp"),
    (&["Running ", " test @ http", "threads and"], "the text of wrk"),
    (&["This is ApacheBench"], "the text of ab"),
    (&["finished in ", "req/s", "status codes:"], "the text of h2load"),
    (&["fio-", "groupid="], "the text of fio"),
    (&["\"fio version\""], "JSON of fio"),
    (&["HPING "], "the text of hping"),
    (&["HOST: ", "Loss%"], "the text of mtr"),
    (&["\"mtr\"", "\"hubs\""], "JSON of mtr"),
    (&["twping statistics"], "the text of twping"),
    (&["owping statistics"], "the text of owping"),
    (&[" ping statistics ---"], "the text of ping"),
    (&[" ping6 statistics ---"], "the text of ping6"),
    // One that was stopped has no statistics.
    (&["PING ", " bytes of data"], "the text of ping"),
    (&["PING ", " data bytes"], "the text of ping"),
    (&["PING6("], "the text of ping6"),
    (&[" bytes, ", " avg, ", "% loss)"], "the text of fping"),
    (&["xmt/rcv/%loss"], "the text of fping"),
    (&["Ping statistics for "], "the text of ping"),
    (&["Ping-Statistik "], "the text of ping"),
    (&["ping-Statistik ---"], "the text of ping"),
    (&[" bytes from ", "icmp_seq="], "the text of ping"),
    (&["Tracing route to "], "the text of tracert"),
    (&["Mtr_Version,"], "CSV of mtr"),
    (&["NTTTCP "], "the text of ntttcp"),
    (&[" rtt=", " ipdv="], "the text of irtt (-o FILE writes JSON, which is read)"),
    (&["\"download\"", "\"upload\"", "\"bandwidth\""], "JSON of speedtest"),
    (&["traceroute to "], "the text of traceroute"),
    (&["Speedtest by Ookla"], "the text of speedtest"),
    (&["\"speedtest\""], "JSON of speedtest"),
];

/// What a file is that is not text.
pub(super) fn binary(file: &[u8]) -> Option<String> {
    if file.get(TAR_MARK) == Some(b"ustar") {
        return Some(
            "this is an archive of tar, which is not unpacked: unpack it first: tar xf FILE".to_owned(),
        );
    }
    let (_, kind, advice) = MAGICS.iter().find(|(magic, ..)| file.starts_with(magic))?;
    Some(format!("this is {kind}, which is not read: {advice}"))
}

/// What a text is that is not read, and what to do.
pub(super) fn text(text: &str) -> Option<String> {
    let (_, tool) = TOOLS.iter().find(|(words, _)| words.iter().all(|word| text.contains(word)))?;
    Some(format!("this is {tool}, which is not supported"))
}

-- A small campaign in record format 1. The reports lack what the format's first writers did not have yet.
INSERT INTO campaign VALUES (1, '0.1.0', 5, 'a.toml', 'title = "a"', NULL, '[]', '7', 'two namespaces', 'shared');
INSERT INTO host VALUES (1, 'sender', 'namespace', 3, '{"agent_version":"0.1.0","os":"Linux","kernel":"6","machine":"x86_64","cpu_model":"","cores":2,"memory_kib":1,"governor":null,"clock_source":null,"virtualised":true,"abilities":{}}');
INSERT INTO run VALUES (1, 0, 0, 'stream', 'ipv6', 'tcp', 'segment', 128, '', 1800000000000000000, 250, 'valid', '[]',
    '{"token":9,"family":"ipv6","transport":"tcp","framing":"segment","message_bytes":128,"cpu_scope":"shared","poll_ns":0,"probe":{"probe":"stream","pacing":"flood","length":{"packets":1000},"warmup_ns":0,"interval_ns":100,"metrics":["throughput"]}}',
    0, 0, 0, 0);
INSERT INTO value VALUES (1, 'throughput', 'Mbit/s', 'measured', 93.5, NULL);
INSERT INTO side VALUES (1, 'sender', '{"role":"sender","endpoint":{"family":"ipv6","transport":"tcp","local":"[2001:2::1]:5","peer":"[2001:2::2]:6","interface":"st0","interface_mtu":1500,"path_mtu":1500,"offloads":{"tso":false,"gso":false,"gro":false,"lro":null},"congestion_control":"cubic"},"sent":{"warmup":0,"measured":1000,"markers":1,"bytes":128000,"refused":0,"first_ns":1,"last_ns":2,"max_late_ns":null},"received":{"warmup":0,"measured":0,"at_first":0,"bytes":0,"duplicates":0,"reordered":0,"beyond_window":0,"strays":0,"first_ns":0,"last_ns":0},"delays":null,"series":[],"cpu":null,"tcp":null,"counters":{},"peak_rss_kib":null}');
INSERT INTO side VALUES (1, 'receiver', '{"role":"receiver","endpoint":{"family":"ipv6","transport":"tcp","local":"[2001:2::2]:6","peer":"[2001:2::1]:5","interface":"st0","interface_mtu":1500,"path_mtu":1500,"offloads":{"tso":false,"gso":false,"gro":false,"lro":null},"congestion_control":"cubic"},"sent":{"warmup":0,"measured":0,"markers":0,"bytes":0,"refused":0,"first_ns":0,"last_ns":0,"max_late_ns":null},"received":{"warmup":0,"measured":1000,"at_first":1,"bytes":128000,"duplicates":0,"reordered":0,"beyond_window":0,"strays":0,"first_ns":1,"last_ns":2},"delays":null,"series":[],"cpu":null,"tcp":null,"counters":{},"peak_rss_kib":null}');
INSERT INTO delays VALUES (1, 'receiver', 15000.5, NULL, NULL, '[[15000,1000]]');
INSERT INTO series VALUES (1, 'receiver', 0, 600, 76800, 15000.0);
INSERT INTO series VALUES (1, 'receiver', 100, 400, 51200, 15001.25);
INSERT INTO warning VALUES (1, 'tick', 'coarse', 'longer');

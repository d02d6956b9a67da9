-- From format 1, which had no settings and one direction only, to format 2. Run in one transaction.
ALTER TABLE run ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';

ALTER TABLE side RENAME TO old_side;
ALTER TABLE delays RENAME TO old_delays;
ALTER TABLE series RENAME TO old_series;

CREATE TABLE side (
    run INTEGER NOT NULL REFERENCES run (id),
    direction TEXT NOT NULL,
    role TEXT NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (run, direction, role)
) STRICT, WITHOUT ROWID;
INSERT INTO side SELECT run, 'forward', role, report FROM old_side;

CREATE TABLE delays (
    run INTEGER NOT NULL REFERENCES run (id),
    direction TEXT NOT NULL,
    role TEXT NOT NULL,
    mean_ns REAL NOT NULL,
    jitter_ns REAL,
    jitter_rfc3550_ns REAL,
    buckets TEXT NOT NULL,
    PRIMARY KEY (run, direction, role)
) STRICT, WITHOUT ROWID;
INSERT INTO delays SELECT run, 'forward', role, mean_ns, jitter_ns, jitter_rfc3550_ns, buckets FROM old_delays;

CREATE TABLE series (
    run INTEGER NOT NULL REFERENCES run (id),
    direction TEXT NOT NULL,
    role TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    delay_mean_ns REAL,
    PRIMARY KEY (run, direction, role, start_ns)
) STRICT, WITHOUT ROWID;
INSERT INTO series SELECT run, 'forward', role, start_ns, messages, bytes, delay_mean_ns FROM old_series;

DROP TABLE old_side;
DROP TABLE old_delays;
DROP TABLE old_series;

PRAGMA user_version = 2;

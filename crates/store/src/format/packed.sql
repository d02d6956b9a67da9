-- Since format 8: resuming a record of format 7 adds these tables to it.
-- Texts that many runs have in common, each once.
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE shared (
    run INTEGER PRIMARY KEY REFERENCES run (id),
    spec INTEGER REFERENCES text (id),
    absent INTEGER REFERENCES text (id)
) STRICT;

-- JSON, compressed by zlib. One table would have rows of which one fills a page of 4096 bytes by half or more.
CREATE TABLE packed_reports (
    run INTEGER PRIMARY KEY REFERENCES run (id),
    reports BLOB NOT NULL
) STRICT;

CREATE TABLE packed_delays (
    run INTEGER PRIMARY KEY REFERENCES run (id),
    delays BLOB NOT NULL
) STRICT;

CREATE TABLE packed_slices (
    run INTEGER PRIMARY KEY REFERENCES run (id),
    slices BLOB NOT NULL
) STRICT;

CREATE INDEX warning_of_run ON warning (run);

-- From format 2, which had no slices, to format 3. Run in one transaction.
CREATE TABLE slice (
    run INTEGER NOT NULL REFERENCES run (id),
    direction TEXT NOT NULL,
    role TEXT NOT NULL,
    round INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    at_first INTEGER NOT NULL,
    first_ns INTEGER NOT NULL,
    last_ns INTEGER NOT NULL,
    delay_ns INTEGER,
    jitter_ns REAL,
    cpu_ns INTEGER,
    waited_ns INTEGER,
    PRIMARY KEY (run, direction, role, round)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;

-- Format 8 of the record, with packed.sql. docs/record.md says what each column holds.
CREATE TABLE campaign (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    program_version TEXT NOT NULL,
    created_unix_ns INTEGER NOT NULL,
    study_name TEXT NOT NULL,
    study_text TEXT NOT NULL,
    scale TEXT,
    settings TEXT NOT NULL,
    seed TEXT NOT NULL,
    testbed TEXT NOT NULL,
    cpu_scope TEXT NOT NULL,
    sample_period_ns INTEGER
) STRICT;

CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    since_unix_ns INTEGER NOT NULL,
    facts TEXT NOT NULL
) STRICT;

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    probe TEXT NOT NULL,
    family TEXT NOT NULL,
    transport TEXT NOT NULL,
    size_of TEXT NOT NULL,
    size INTEGER NOT NULL,
    replica TEXT NOT NULL,
    settings TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    status TEXT NOT NULL,
    reasons TEXT NOT NULL,
    spec TEXT NOT NULL,
    lost_sender_queue INTEGER NOT NULL,
    lost_interface INTEGER NOT NULL,
    lost_socket_buffer INTEGER NOT NULL,
    lost_network INTEGER NOT NULL,
    UNIQUE (block, position)
) STRICT;

CREATE TABLE value (
    run INTEGER NOT NULL REFERENCES run (id),
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    kind TEXT NOT NULL,
    number REAL,
    reason TEXT,
    PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID;

-- Empty but in records of `stacklab import`, and of format 7.
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

CREATE TABLE warning (
    run INTEGER NOT NULL REFERENCES run (id),
    code TEXT NOT NULL,
    text TEXT NOT NULL,
    advice TEXT NOT NULL
) STRICT;

CREATE TABLE explanation (
    id INTEGER PRIMARY KEY,
    probe TEXT NOT NULL,
    factor TEXT NOT NULL,
    baseline TEXT NOT NULL,
    candidate TEXT NOT NULL,
    health TEXT,
    reason TEXT
) STRICT;

CREATE TABLE stage_cost (
    explanation INTEGER NOT NULL REFERENCES explanation (id),
    place INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    baseline_ns REAL NOT NULL,
    candidate_ns REAL NOT NULL,
    difference_ns REAL NOT NULL,
    error_ns REAL NOT NULL,
    adjusted_p REAL,
    PRIMARY KEY (explanation, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE stack_cost (
    explanation INTEGER NOT NULL REFERENCES explanation (id),
    place INTEGER NOT NULL,
    functions TEXT NOT NULL,
    baseline_samples INTEGER NOT NULL,
    candidate_samples INTEGER NOT NULL,
    baseline_ns REAL NOT NULL,
    candidate_ns REAL NOT NULL,
    PRIMARY KEY (explanation, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE exact_count (
    explanation INTEGER PRIMARY KEY REFERENCES explanation (id),
    qemu TEXT NOT NULL,
    kernel TEXT NOT NULL,
    probe TEXT NOT NULL,
    arms TEXT NOT NULL,
    messages INTEGER NOT NULL,
    rounds TEXT NOT NULL
) STRICT;

CREATE TABLE instruction_count (
    explanation INTEGER NOT NULL REFERENCES exact_count (explanation),
    place INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    stage TEXT,
    baseline INTEGER NOT NULL,
    candidate INTEGER NOT NULL,
    PRIMARY KEY (explanation, place)
) STRICT, WITHOUT ROWID;

-- Empty but in records of `stacklab import`.
CREATE TABLE origin (
    run INTEGER PRIMARY KEY REFERENCES run (id),
    tool TEXT NOT NULL,
    version TEXT,
    file TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    overrides TEXT NOT NULL
) STRICT;

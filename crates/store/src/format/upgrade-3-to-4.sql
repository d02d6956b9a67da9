-- From format 3, which had no explanations and no origins, to format 4. Run in one transaction.
ALTER TABLE campaign ADD COLUMN sample_period_ns INTEGER;

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

CREATE TABLE origin (
    run INTEGER PRIMARY KEY REFERENCES run (id),
    tool TEXT NOT NULL,
    version TEXT,
    file TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    told TEXT NOT NULL
) STRICT;

PRAGMA user_version = 4;

-- The tables of a fleet, for SQLite and PostgreSQL. Times are nanoseconds since the Unix epoch.
CREATE TABLE fleet (format BIGINT NOT NULL);
INSERT INTO fleet VALUES (2);

-- An agent, and how long it is known to live.
CREATE TABLE agent (
    name TEXT PRIMARY KEY,
    facts TEXT NOT NULL,
    alive_until_ns BIGINT NOT NULL
);

-- Agents and shared links: each row is what a reservation takes, and is locked while one is made.
CREATE TABLE resource (name TEXT PRIMARY KEY);

CREATE TABLE campaign (
    id TEXT PRIMARY KEY,
    created_ns BIGINT NOT NULL,
    request TEXT NOT NULL,
    class TEXT NOT NULL CHECK (class IN ('exclusive', 'normal', 'background')),
    most_attempts BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'stopped'))
);

CREATE TABLE pair (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    pair BIGINT NOT NULL,
    sender TEXT NOT NULL REFERENCES agent (name),
    receiver TEXT NOT NULL REFERENCES agent (name),
    -- Why it is not measured.
    skipped TEXT,
    PRIMARY KEY (campaign, pair)
);

-- The two agents and the shared links of a pair.
CREATE TABLE pair_resource (
    campaign TEXT NOT NULL,
    pair BIGINT NOT NULL,
    resource TEXT NOT NULL REFERENCES resource (name),
    PRIMARY KEY (campaign, pair, resource)
);

CREATE TABLE block (
    campaign TEXT NOT NULL,
    pair BIGINT NOT NULL,
    block BIGINT NOT NULL,
    -- The place in the campaign's random order.
    place BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done', 'given_up')),
    attempts BIGINT NOT NULL,
    reason TEXT,
    PRIMARY KEY (campaign, pair, block)
);
CREATE INDEX block_in_order ON block (campaign, state, place);

CREATE TABLE reservation (
    campaign TEXT NOT NULL,
    pair BIGINT NOT NULL,
    block BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    resource TEXT NOT NULL,
    class TEXT NOT NULL,
    deadline_ns BIGINT NOT NULL,
    released_ns BIGINT,
    PRIMARY KEY (campaign, pair, block, attempt, resource)
);
-- The engine itself refuses a second exclusive block on an agent or a link.
CREATE UNIQUE INDEX one_exclusive ON reservation (resource) WHERE released_ns IS NULL AND class = 'exclusive';
CREATE INDEX open_reservation ON reservation (resource) WHERE released_ns IS NULL;

CREATE TABLE result (
    campaign TEXT NOT NULL,
    pair BIGINT NOT NULL,
    block BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    received_ns BIGINT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (campaign, pair, block, attempt)
);

-- What a report reads of each result: the figures of each question, as JSON. A result is tens of times as long.
CREATE TABLE summary (
    campaign TEXT NOT NULL,
    pair BIGINT NOT NULL,
    block BIGINT NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (campaign, pair, block)
);

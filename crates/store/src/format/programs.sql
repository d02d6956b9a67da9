-- With schema.sql; records made before programs were counted do not have it.
CREATE TABLE program_count (
    explanation INTEGER PRIMARY KEY REFERENCES explanation (id),
    qemu TEXT NOT NULL,
    cpu TEXT NOT NULL,
    requests TEXT NOT NULL,
    cells TEXT NOT NULL
) STRICT;

-- The application's own tables. They live in the same database as the kernel's, which is what makes a transactional
-- step possible: the stock and the outcome of the step change in one transaction, or neither does.

CREATE TABLE IF NOT EXISTS item (
    id TEXT PRIMARY KEY,
    price_cents BIGINT NOT NULL CHECK (price_cents >= 0),
    discontinued BOOLEAN NOT NULL DEFAULT FALSE
);

CREATE TABLE IF NOT EXISTS stock (
    item TEXT NOT NULL REFERENCES item (id),
    warehouse TEXT NOT NULL,
    on_hand BIGINT NOT NULL CHECK (on_hand >= 0),
    minimum BIGINT NOT NULL CHECK (minimum >= 0),
    -- Pieces of paid orders that are promised to this warehouse.
    reserved BIGINT NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    PRIMARY KEY (item, warehouse)
);

-- Mails to be sent. Whatever delivers them reads from here; a row is the promise that it will.
CREATE TABLE IF NOT EXISTS outbox (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    effect_key TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- A rule of the business, beside the effect key: one run never tells the same person the same thing twice.
    UNIQUE (run, recipient, subject)
);

-- Work that another process does for a waiting step: one row for each effect key, however often the step runs.
CREATE TABLE IF NOT EXISTS quote_task (
    effect_key TEXT PRIMARY KEY,
    -- Whom to ask whether the answer is still wanted.
    run TEXT NOT NULL,
    step TEXT NOT NULL,
    item TEXT NOT NULL,
    pieces BIGINT NOT NULL,
    -- Pinned when the row is made. A worker with other terms that runs the step later does not change the question.
    terms TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'failed', 'canceled')),
    attempts BIGINT NOT NULL DEFAULT 0,
    answer TEXT
);

CREATE INDEX IF NOT EXISTS quote_task_open ON quote_task (state) WHERE state = 'open';

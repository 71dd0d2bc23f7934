-- signal/spend
UPDATE surefoot.signal SET spent_at = $2 WHERE no = ANY ($1) AND spent_at IS NULL

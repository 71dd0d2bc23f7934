-- signal/spend
UPDATE surefoot_signal SET spent_at = ? WHERE no = ? AND spent_at IS NULL

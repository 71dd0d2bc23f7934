-- meta/server
-- What a session asked for when it began tells whether somebody in between has dropped it.
SELECT current_setting('server_version_num')::int AS version,
    current_setting('plan_cache_mode') = 'force_generic_plan' AS is_ours

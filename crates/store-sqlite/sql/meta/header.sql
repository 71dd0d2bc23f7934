-- meta/header
SELECT application_id <> 0 OR user_version <> 0 AS is_taken
FROM pragma_application_id, pragma_user_version

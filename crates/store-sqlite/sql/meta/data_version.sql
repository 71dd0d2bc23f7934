-- meta/data_version
PRAGMA data_version

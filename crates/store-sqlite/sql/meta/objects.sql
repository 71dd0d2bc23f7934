-- meta/objects
SELECT type, name FROM sqlite_schema WHERE substr(name, 1, length(?1)) = ?1

-- retention/close_place
-- Waits for whoever is recording into the scope; who comes later finds the mark. See `deleting`.
SELECT surefoot.close_place($1) AS closed

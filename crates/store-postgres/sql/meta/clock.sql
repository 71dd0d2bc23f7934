-- meta/clock
SELECT surefoot.clock() AS now

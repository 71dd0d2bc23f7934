-- One decision about a request, by the server's clock: the same as `Rate::decide`.
-- KEYS[1]: when the requests of the last period went on, in microseconds, the oldest first. ARGV: the period in
-- microseconds, the limit.
local time = redis.call('TIME')
local period, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
-- A clock that is set back is no later than what it has already said.
local newest = tonumber(redis.call('LINDEX', KEYS[1], -1) or '0')
local now = math.max(time[1] * 1000000 + time[2], newest)
local oldest = redis.call('LINDEX', KEYS[1], 0)
while oldest and tonumber(oldest) + period <= now do
  redis.call('LPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], 0)
end
local used = redis.call('LLEN', KEYS[1])
if used >= limit then
  return {1, 0, tonumber(oldest) + period - now, newest + period - now}
end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(period / 1000) + 1))
return {0, limit - used - 1, 0, period}

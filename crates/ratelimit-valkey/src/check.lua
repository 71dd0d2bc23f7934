-- One decision of the generic cell rate algorithm, by the server's clock: the same as `Rate::decide`.
-- KEYS[1]: when all is free again, in microseconds. ARGV: microseconds per request, the limit.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local whole = interval * limit
local from = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local used = from - now + interval
if used > whole then
  return {1, 0, used - whole, from - now}
end
local full_at = from + interval
local keep_ms = math.ceil((full_at - now) / 1000) + 1
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', string.format('%.0f', keep_ms))
return {0, math.floor((whole - used) / interval), 0, full_at - now}
